import { isDeepStrictEqual } from "node:util";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import type { Field, Table } from "@sluice/client/internal/config/field";
import { isRecord } from "@sluice/client/internal/config/section";
import { parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import {
  type GatewayConfiguration,
  gatewayConfiguration,
  parseConfiguration,
} from "../config/configuration.ts";
import { readText } from "../config/load-configuration.ts";
import type { FlagValues } from "../config/read-flags.ts";
import type { LeveledLogger } from "../observability/logger.ts";
import type { ReloadMetrics } from "../observability/operations-metrics.ts";
import { checkFiles } from "./check-files.ts";

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
 * The returned function reads the configuration again (SIGHUP), one call at a time. Logs an invalid
 * file and then changes nothing; logs by name the fields that need a restart. Never rejects.
 */
export function reloaderOf({ file, text, flags, gateway, logger }: ReloadOptions): () => Promise<void> {
  let last = text;
  return async () => {
    try {
      const wanted = await readText(file);
      const configuration = parseConfiguration(wanted, file, flags);
      await checkFiles(configuration);
      const { reloaded } = changedFields(last, wanted);
      // Compared with the text at the start: if a change was undone, it needs no restart.
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
}

/** Paths such as `timeouts.idle`, in the tables' order. */
interface ChangedFields {
  /** Fields that take effect when the file is read again. */
  readonly reloaded: readonly string[];
  readonly needRestart: readonly string[];
}

/**
 * The fields that differ between two valid configuration files. An explicit default equals an
 * absent field.
 */
export function changedFields(before: string, after: string): ChangedFields {
  const [old, now] = [before, after].map((text) => parseYamlDocuments(text, "")[0]?.value);
  const changed = changesIn(gatewayConfiguration, "", old, now, false);
  const pathsOf = (isReloaded: boolean) =>
    changed.filter((change) => change.isReloaded === isReloaded).map(({ path }) => path);
  return { reloaded: pathsOf(true), needRestart: pathsOf(false) };
}

interface Change {
  readonly path: string;
  readonly isReloaded: boolean;
}

function changesIn(table: Table, path: string, old: unknown, now: unknown, isReloaded: boolean): Change[] {
  return Object.entries<Field>(table.fields).flatMap(([name, field]) => {
    const [was, is] = [memberOf(old, name) ?? field.default, memberOf(now, name) ?? field.default];
    if (isDeepStrictEqual(was, is)) return [];
    const change = { path: `${path}${name}`, isReloaded: isReloaded || field.isReloaded };
    // A list of sections changes as a whole, and so does an optional section that appears or
    // disappears.
    const isWhole = field.type !== "section" && !(isRecord(was) && isRecord(is));
    if (field.table === undefined || isWhole) return [change];
    return changesIn(field.table, `${change.path}.`, was, is, change.isReloaded);
  });
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? (value[name] ?? undefined) : undefined;
}
