import { setTimeout as sleep } from "node:timers/promises";
import { type RunningGateway, startGateway } from "../../app/app.ts";
import { reloaderOf } from "../../app/reload-configuration.ts";
import { inherit } from "../../app/runtime/inheritance.ts";
import type { Lineage } from "../../app/runtime/lineage.ts";
import { startWorkers } from "../../app/runtime/primary.ts";
import { ServeLife } from "../../app/runtime/serve-life.ts";
import { relieve } from "../../app/runtime/successor.ts";
import { singleProcess } from "../../app/runtime.ts";
import { surviveUncaughtExceptions } from "../../app/uncaught-exceptions.ts";
import { type GatewayConfiguration, parseConfiguration } from "../../config/configuration.ts";
import { readText } from "../../config/load-configuration.ts";
import { checkNamedFiles } from "../../config/named-files.ts";
import { listenerPorts } from "../../config/sections/listeners.ts";
import { workerCount } from "../../config/sections/workers.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import type { Invocation } from "../command.ts";
import type { serveFlags } from "../commands/serve.ts";
import { endBySignal, terminationSignal } from "../termination-signal.ts";
import { notifyReady } from "./notify-service-manager.ts";
import { replaceAtSignal } from "./replace-program.ts";
import { listeningLines, startWarnings } from "./serve-notices.ts";

/**
 * How long a replaced program serves existing connections, as Go's server waits for new ones. Past
 * it the grace period begins.
 */
const REPLACED_DELAY_MS = 5_000;

/**
 * Runs the gateway until SIGTERM or Ctrl-C; running sessions then get the grace period. SIGHUP
 * rereads the configuration; SIGUSR2 starts the program again in its place.
 */
export async function run({ values }: Invocation<typeof serveFlags>): Promise<number> {
  const { config, ...given } = values;
  const flags = Object.fromEntries(
    Object.entries<string | undefined>(given).filter(
      (flag): flag is [string, string] => flag[1] !== undefined,
    ),
  );
  const life = new ServeLife();
  void terminationSignal(["SIGTERM", "SIGINT"]).then((signal) => {
    if (life.state !== "starting") return life.leave(signal);
    process.stderr.write(`sluice serve: ${signal} before the gateway was ready\n`);
    endBySignal(signal);
  });
  const text = await readText(config);
  const configuration = parseConfiguration(text, config, flags);
  await checkNamedFiles(configuration.namedFiles);
  const count = workerCount(configuration.workers);
  const logger = createLogger(configuration.logging);
  const listenerNames = listenerPorts(configuration.listeners).map(({ name }) => name);
  const { lineage, hasPredecessor, problem } = inherit(process.env, listenerNames);
  replaceAtSignal(lineage, logger, life);
  if (problem !== undefined) logger.warn({ problem }, "sockets of a service manager are not taken");
  for (const warning of startWarnings(configuration)) logger.warn({}, warning);
  const forWorkers = { configurationText: text, configurationFile: config, flags };
  // Before it serves, SIGHUP has nothing to reread and must not kill the process.
  process.on("SIGHUP", () => life.reload());
  const gateway =
    count === 1
      ? await startSingle(configuration, logger, lineage)
      : await startWorkers(configuration, count, forWorkers, { logger, lineage });
  lineage.sockets.closeUnused();
  life.serve(reloaderOf({ file: config, text, flags, gateway, logger }));
  process.stdout.write(listeningLines(configuration, gateway.listening));
  await notifyReady();
  const predecessorGone = hasPredecessor ? relieve() : undefined;
  life.announce();
  surviveUncaughtExceptions(() => life.leave("failed"));
  const end = await life.end;
  if (end === "replaced") await gateway.shutDown({ delayMs: REPLACED_DELAY_MS, hasSuccessor: true });
  else {
    // When this process ends, the service manager kills the rest, so it waits for its predecessor.
    const patience = sleep(configuration.timeouts.shutdownGracePeriodMs, undefined, { ref: false });
    await Promise.all([gateway.shutDown(), Promise.race([predecessorGone, patience])]);
  }
  return end === "failed" ? 1 : 0;
}

/** A single process; earlier and later programs know it by its lineage. */
async function startSingle(
  configuration: GatewayConfiguration,
  logger: Logger,
  lineage: Lineage,
): Promise<RunningGateway> {
  // Without the folder, the next program cannot resume this one's sessions.
  const folder = await lineage.openFolder().catch(() => undefined);
  const gateway = await startGateway(configuration, logger, {
    ...singleProcess,
    listen: lineage.sockets.listen,
    siblings: folder && { processes: 1, socketFolder: folder.path },
    replicaId: lineage.replicaId,
  });
  return {
    ...gateway,
    shutDown: async (departure) => {
      await gateway.shutDown(departure);
      await folder?.stop();
    },
  };
}
