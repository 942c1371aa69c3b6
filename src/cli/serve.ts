import { startGateway } from "../app/app.ts";
import { reloaderOf } from "../app/reload-configuration.ts";
import { startWorkers } from "../app/runtime/primary.ts";
import { surviveUncaughtExceptions } from "../app/uncaught-exceptions.ts";
import { parseConfiguration } from "../config/configuration.ts";
import { readText } from "../config/load-configuration.ts";
import { checkNamedFiles } from "../config/named-files.ts";
import { workerCount } from "../config/workers.ts";
import { createLogger } from "../observability/logger.ts";
import type { Invocation } from "./command.ts";
import type { serveFlags } from "./commands/serve.ts";
import { notifyReady } from "./notify-service-manager.ts";
import { authenticationWarning, listeningLines } from "./serve-notices.ts";
import { endBySignal, terminationSignal } from "./termination-signal.ts";

/** The gateway, until SIGTERM or Ctrl-C; then running sessions get the grace period, and a start that has not ended is given up. SIGHUP makes it read its configuration again. */
export async function run({ values }: Invocation<typeof serveFlags>): Promise<number> {
  const { config, ...given } = values;
  const flags = Object.fromEntries(
    Object.entries<string | undefined>(given).filter(
      (flag): flag is [string, string] => flag[1] !== undefined,
    ),
  );
  const stopped = terminationSignal(["SIGTERM", "SIGINT"]);
  let isReady = false;
  void stopped.then((signal) => {
    if (isReady) return;
    process.stderr.write(`sluice serve: ${signal} before the gateway was ready\n`);
    endBySignal(signal);
  });
  const text = await readText(config);
  const configuration = parseConfiguration(text, config, flags);
  await checkNamedFiles(configuration.namedFiles);
  const count = workerCount(configuration.workers);
  const logger = createLogger(configuration.logging);
  const warning = authenticationWarning(configuration);
  if (warning !== undefined) logger.warn({}, warning);
  const forWorkers = { configurationText: text, configurationFile: config, flags };
  // Until it serves there is nothing to read again, and no reason to die of it.
  let reload = async (): Promise<void> => {};
  process.on("SIGHUP", () => void reload());
  const gateway =
    count === 1
      ? await startGateway(configuration, logger)
      : await startWorkers(configuration, count, forWorkers, logger);
  isReady = true;
  reload = reloaderOf({ file: config, text, flags, gateway, logger });
  process.stdout.write(listeningLines(configuration, gateway.listening));
  notifyReady();
  const failed = new Promise<"failed">((resolve) => surviveUncaughtExceptions(() => resolve("failed")));
  const end = await Promise.race([stopped, failed]);
  reload = async () => {};
  await gateway.shutDown();
  return end === "failed" ? 1 : 0;
}
