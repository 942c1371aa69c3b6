import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { changedFields } from "../config/changed-fields.ts";
import { type GatewayConfiguration, parseConfiguration } from "../config/configuration.ts";
import { readText } from "../config/load-configuration.ts";
import { checkNamedFiles } from "../config/named-files.ts";
import type { FlagValues } from "../config/read-flags.ts";
import type { LeveledLogger } from "../observability/logger.ts";
import type { ReloadMetrics } from "../observability/operations-metrics.ts";

interface ReloadOptions {
  readonly file: string;
  /** The configuration text at the start. */
  readonly text: string;
  readonly flags: FlagValues;
  /** Applies policy and the contents of the files that the configuration names. */
  readonly gateway: {
    reload(configuration: GatewayConfiguration, text: string): Promise<void>;
    readonly reloads?: Pick<ReloadMetrics, "configurationRead"> | undefined;
  };
  readonly logger: LeveledLogger;
}

/**
 * The returned function reads the configuration again (SIGHUP), one call at a time. An invalid file is
 * logged and changes nothing; fields that need a restart are logged by name. Never rejects.
 */
export function reloaderOf({ file, text, flags, gateway, logger }: ReloadOptions): () => Promise<void> {
  let last = text;
  let running = Promise.resolve();
  const reload = async (): Promise<void> => {
    try {
      const wanted = await readText(file);
      const configuration = parseConfiguration(wanted, file, flags);
      await checkNamedFiles(configuration.namedFiles);
      const { reloaded } = changedFields(last, wanted);
      // Compared with the text at the start: a change that was undone needs no restart.
      const { needRestart } = changedFields(text, wanted);
      logger.configure(configuration.logging);
      await gateway.reload(configuration, wanted);
      last = wanted;
      gateway.reloads?.configurationRead(true);
      logger.info({ configurationFile: file, reloaded }, "the configuration was read again");
      if (needRestart.length > 0) logger.warn({ needRestart }, "what has changed here needs a restart");
    } catch (error) {
      gateway.reloads?.configurationRead(false);
      const problems = error instanceof ConfigurationError ? error.message.split("\n") : [String(error)];
      logger.error({ configurationFile: file, problems }, "the configuration could not be read again");
    }
  };
  return () => {
    running = running.then(reload);
    return running;
  };
}
