import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { type RunningGateway, startGateway } from "../../app/app.ts";
import { checkFiles } from "../../app/check-files.ts";
import { reloaderOf } from "../../app/reload-configuration.ts";
import { inherit, type Lineage, relieve, startSuccessor } from "../../app/runtime/inheritance.ts";
import { startWorkers } from "../../app/runtime/primary.ts";
import { ServeLife } from "../../app/runtime/serve-life.ts";
import { singleProcess } from "../../app/runtime.ts";
import { surviveUncaughtExceptions } from "../../app/uncaught-exceptions.ts";
import { type GatewayConfiguration, parseConfiguration, workerCount } from "../../config/configuration.ts";
import { configurationWarnings } from "../../config/configuration-warnings.ts";
import { readText } from "../../config/load-configuration.ts";
import { type Authentication, identifiesCallers } from "../../config/sections/authentication.ts";
import { listenerPorts, servesApi } from "../../config/sections/listeners.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import type { Invocation } from "../command.ts";
import type { command } from "../commands/serve.ts";
import { endBySignal, TerminationSignal } from "../termination-signal.ts";

const FAILED = "the program could not be replaced, and serves on";

/**
 * At each SIGUSR2 starts the program again; when the new one serves, this one leaves. A signal
 * waits until this program has announced that it serves; leaving cancels a start in progress.
 */
function replaceAtSignal(
  lineage: Lineage,
  logger: Pick<Logger, "info" | "error">,
  life: Pick<ServeLife, "leaving" | "announced" | "leave">,
): void {
  let isStarting = false;
  const replace = async (): Promise<void> => {
    if (isStarting || life.leaving.aborted) return;
    if (process.pid === 1) {
      logger.error({ problem: "the end of process 1 ends its container" }, FAILED);
      return;
    }
    isStarting = true;
    await life.announced;
    logger.info({}, "starting the program that replaces this one");
    try {
      const { pid: successorPid } = await startSuccessor(lineage, life.leaving);
      lineage.handOver();
      logger.info({ successorPid }, "another program serves in this one's place");
      life.leave("replaced");
    } catch (error) {
      const problem = systemErrorText(error);
      logger.error({ problem }, FAILED);
      isStarting = false;
    }
  };
  process.on("SIGUSR2", () => void replace());
}

/**
 * How long a replaced program serves existing connections; Go's server waits as long for new ones.
 * Past it the grace period begins.
 */
const REPLACED_DELAY_MS = 5_000;

/**
 * Runs the gateway until SIGTERM or Ctrl-C; running sessions then get the grace period. SIGHUP
 * rereads the configuration; SIGUSR2 starts the program again in its place.
 */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  const { config, ...given } = values;
  const flags = Object.fromEntries(
    Object.entries<string | undefined>(given).filter(
      (flag): flag is [string, string] => flag[1] !== undefined,
    ),
  );
  const life = new ServeLife();
  void new TerminationSignal(["SIGTERM", "SIGINT"]).came.then((signal) => {
    if (life.state !== "starting") return life.leave(signal);
    process.stderr.write(`sluice serve: ${signal} before the gateway was ready\n`);
    endBySignal(signal);
  });
  // From here on, so that a signal during the start neither kills the process nor is lost.
  process.on("SIGHUP", () => life.reload());
  const text = await readText(config);
  const configuration = parseConfiguration(text, config, flags);
  await checkFiles(configuration);
  const count = workerCount(configuration.workers);
  const logger = createLogger(configuration.logging);
  const listenerNames = listenerPorts(configuration.listeners).map(({ name }) => name);
  const { lineage, hasPredecessor, problem } = inherit(process.env, listenerNames);
  replaceAtSignal(lineage, logger, life);
  if (problem !== undefined) logger.warn({ problem }, "sockets of a service manager are not taken");
  for (const warning of startWarnings(configuration)) logger.warn({}, warning);
  const forWorkers = { configurationText: text, configurationFile: config, flags };
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
    // When this process ends, the service manager kills the others, so it waits for its
    // predecessor.
    const patience = sleep(configuration.timeouts.shutdownGracePeriodMs, undefined, { ref: false });
    await Promise.all([gateway.shutDown(), Promise.race([predecessorGone, patience])]);
  }
  return end === "failed" ? 1 : 0;
}

/** A single process. Earlier and later programs recognize it by its lineage. */
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

/**
 * Sends READY=1 and MAINPID= for systemd's Type=notify, if a service manager asks. Node has no Unix
 * datagram sockets, so systemd's own program sends it.
 */
export async function notifyReady(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  if (env.NOTIFY_SOCKET === undefined) return;
  const sender = spawn("systemd-notify", ["--ready", `--pid=${process.pid}`], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  await new Promise<void>((resolve) => {
    sender.once("exit", () => resolve());
    sender.once("error", ({ message }) => {
      process.stderr.write(`sluice serve: cannot notify systemd: ${message}\n`);
      resolve();
    });
  });
}

/** Warnings for the log: settings that are valid but may be mistakes. */
function startWarnings(configuration: GatewayConfiguration): string[] {
  const open = authenticationWarning(configuration);
  return [...(open === undefined ? [] : [open]), ...configurationWarnings(configuration)];
}

/** Warns about listeners without any authentication method; undefined if each has one. */
export function authenticationWarning({
  authentication,
  listeners,
}: Pick<GatewayConfiguration, "authentication" | "listeners">): string | undefined {
  const { kubelet } = listeners;
  if (servesApi(listeners) && !identifiesCallers(authentication))
    return `no authentication is configured: ${answerOf(authentication)}`;
  const ofNode = kubelet && (kubelet.authentication ?? authentication);
  return ofNode && !identifiesCallers(ofNode)
    ? `no authentication is configured for listeners.kubelet: ${answerOf(ofNode)}`
    : undefined;
}

function answerOf({ anonymous }: Authentication): string {
  return anonymous.enabled ? "every request is system:anonymous" : "every request is answered with 401";
}

/**
 * Listeners by name, for people: printed if the system assigned a port and the log level hides it.
 */
function listeningLines(
  { listeners, logging }: Pick<GatewayConfiguration, "listeners" | "logging">,
  urls: Readonly<Record<string, string | undefined>>,
): string {
  const { admin, apiServer, ingress, kubelet } = listeners;
  const ports = [admin.port, apiServer?.port, kubelet?.port, ingress?.httpPort, ingress?.httpsPort];
  if (!ports.includes(0) || logging.level === "debug" || logging.level === "info") return "";
  return Object.entries(urls)
    .filter(([, url]) => url !== undefined)
    .map(([name, url]) => `${name} ${url}\n`)
    .join("");
}
