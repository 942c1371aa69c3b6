import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { openAuditLog } from "../../access/audit/component.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { ConfigurationError } from "../../config/configuration-error.ts";
import { networkOf } from "../../listeners/connection-cap.ts";
import { EdgeRules } from "../../listeners/edge-rules.ts";
import { listenAt, urlOf } from "../../net/listen.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import { MergedMetrics } from "../../observability/merged-metrics.ts";
import type { RunningGateway } from "../app.ts";
import { observeFaults } from "../uncaught-exceptions.ts";
import type { BoundAddress, ListenCall, WorkerStart } from "./calls.ts";
import { ConnectionDispatcher } from "./connection-dispatcher.ts";
import { KeptFiles, type KeptKind } from "./kept-files.ts";
import { MAX_SILENT_BEATS, PROBER_BEAT_MS, ProberWatchdog } from "./prober-watchdog.ts";
import { type ListenerUrls, urlsByListener } from "./runtime.ts";
import { SessionLimiter } from "./session-limiter.ts";
import { SharedProbing } from "./shared-probing.ts";
import { type Worker, WorkerPool } from "./worker-pool.ts";
import { buildWorkersAdmin } from "./workers-admin.ts";

/** OpenSSL's: 16 bytes of name, 16 of HMAC and 16 of AES key. */
const TICKET_KEY_BYTES = 48;

/** What workers read for themselves; the rest of `WorkerStart` is made here. */
export type WorkerConfiguration = Pick<WorkerStart, "configurationText" | "configurationFile" | "flags">;

export interface RunningWorkers
  extends Pick<RunningGateway, "apiServerUrl" | "adminUrl" | "listening" | "shutDown"> {
  /** Each worker takes over what can change while it runs; those that are started later do so as well. */
  reload(configuration: GatewayConfiguration, text: string): Promise<void>;
}

/**
 * The gateway as several processes: this one accepts connections, counts what is counted for all, writes the audit log and answers
 * operators; workers do the rest. Throws ConfigurationError for what a worker could not start with.
 */
export async function startWorkers(
  configuration: GatewayConfiguration,
  count: number,
  forWorkers: WorkerConfiguration,
  logger: Logger = createLogger(configuration.logging),
): Promise<RunningWorkers> {
  const { limits, policy, audit, timeouts, listeners } = configuration;
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-workers-"));
  // A start that is given up ends without `stop`.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const metrics = new MergedMetrics();
  const stopObservingFaults = observeFaults(logger, metrics);
  const edge = new EdgeRules(configuration.edge);
  const places = new SessionLimiter(limits.maxConcurrentSessions, policy.limits);
  const auditLog = audit.log && openAuditLog(audit.log);
  const kept: Readonly<Record<KeptKind, KeptFiles>> = { manifests: new KeptFiles(), named: new KeptFiles() };
  const ticketKeys = randomBytes(TICKET_KEY_BYTES).toString("base64");
  const acceptors = new Map<string, Promise<Server>>();
  let isDraining = false;
  let reloadedText: string | undefined;
  const reloadWorker = async ({ link, index }: Worker): Promise<void> => {
    if (reloadedText === undefined) return;
    await link.request("reload", reloadedText).catch((error: Error) => {
      logger.error(
        { worker: index, problem: error.message },
        "a worker did not read the configuration again",
      );
    });
  };

  const handOver = new ConnectionDispatcher({
    recipients: () => pool.workers,
    maxConnectionsPerAddress: limits.maxConnectionsPerAddress,
    networkOf: (address) => (edge.isTrustedProxy(address) ? undefined : networkOf(address)),
    onRefused: () => metrics.connectionRefused(),
    logger,
  });
  const accept = async ({ name, ...where }: ListenCall): Promise<BoundAddress> => {
    const known = acceptors.get(name) ?? acceptAt(where, (socket) => handOver.accept(name, socket));
    acceptors.set(name, known);
    return (await known).address() as AddressInfo;
  };
  const proberWatch = new ProberWatchdog<Worker>({
    onHung: ({ index, process: child }) => {
      const silentSeconds = (PROBER_BEAT_MS * MAX_SILENT_BEATS) / 1_000;
      logger.error(
        { worker: index, workerPid: child.pid, silentSeconds },
        "the worker that probes for all does not answer, and is killed",
      );
      child.kill("SIGKILL");
    },
  });
  const probing = new SharedProbing<Worker>(() => pool.workers, {
    onProber: (worker) => (worker === undefined ? proberWatch.stop() : proberWatch.watch(worker)),
    onFailed: ({ index, process: child }, { message }) =>
      logger.error(
        { worker: index, workerPid: child.pid, problem: message },
        "a worker could not begin to probe for all",
      ),
  });
  const countReady = (): void => metrics.workersReady(pool.workers.filter(({ isTaking }) => isTaking).length);
  const pool: WorkerPool = new WorkerPool({
    count,
    fork: () => fork(fileURLToPath(workerProgram()), { serialization: "advanced" }),
    startOf: (worker) => ({
      ...forWorkers,
      ticketKeys,
      workers: count,
      adminSocket: adminSocketOf(folder, worker),
    }),
    handlersFor: (worker) => ({
      listen: accept,
      report: ({ closed, sessions }) => {
        worker.sessions = sessions;
        handOver.closed(closed);
      },
      received: (id) => handOver.received(id),
      takePlace: ({ user, namespace }) => places.acquire(worker, user, namespace),
      giveBack: (place) => places.release(place),
      wantsFiles: ({ kind, digest }) => kept[kind].wants(digest),
      keepFiles: ({ kind, files }) => kept[kind].keep(files),
      recallFiles: (kind) => kept[kind].files,
      audit: async (lines) => auditLog?.deliver(lines),
      found: (findings) => probing.found(worker, findings),
    }),
    shutdownGracePeriodMs: timeouts.shutdownGracePeriodMs,
    logger,
    onReady: (worker) => {
      countReady();
      void reloadWorker(worker);
      // Before its first connection.
      probing.ready(worker);
      handOver.resume();
    },
    onGone: (worker, isExpected) => {
      places.giveBackAllOf(worker);
      handOver.forget(worker);
      probing.gone(worker, isExpected);
      metrics.gone(worker, isExpected ? "shutdown" : "crash");
      countReady();
    },
  });

  const admin = buildWorkersAdmin({
    allowedHosts: listeners.admin.allowedHosts,
    pool,
    metrics,
    limits,
    isDraining: () => isDraining,
    adminSocketOf: (worker) => adminSocketOf(folder, worker),
    logger,
  });

  const stop = async (): Promise<void> => {
    // The front door takes nothing more; the other listeners answer that sessions go elsewhere.
    for (const [name, acceptor] of acceptors) if (name.startsWith("ingress.")) closeAcceptor(acceptor);
    await pool.shutDown();
    proberWatch.stop();
    for (const acceptor of acceptors.values()) closeAcceptor(acceptor);
    admin.close();
    admin.closeAllConnections();
    await auditLog?.stop();
    await rm(folder, { recursive: true, force: true });
    stopObservingFaults();
  };
  try {
    const adminAt = await listenAt(admin, listeners.admin);
    await pool.start();
    const urls = await listenerUrls(listeners, adminAt, acceptors);
    logger.info({ ...urls, workers: count }, "the gateway is ready");
    return {
      apiServerUrl: urls.apiServerUrl,
      adminUrl: urls.adminUrl,
      listening: urlsByListener(urls),
      reload: async ({ policy: { limits: sessionLimits } }, text) => {
        places.replaceLimits(sessionLimits);
        reloadedText = text;
        await Promise.all(pool.workers.filter(({ isTaking }) => isTaking).map(reloadWorker));
      },
      shutDown: async () => {
        isDraining = true;
        await stop();
        logger.info({}, "the gateway has stopped");
      },
    };
  } catch (error) {
    await stop();
    const message = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError([{ source: "workers", line: 0, column: 0, path: "", message }]);
  }
}

/** Of those that workers asked for; by then each has. */
async function listenerUrls(
  { apiServer, kubelet }: GatewayConfiguration["listeners"],
  adminAt: BoundAddress,
  acceptors: ReadonlyMap<string, Promise<Server>>,
): Promise<ListenerUrls> {
  const urlAt = async (name: string, scheme: "http" | "https"): Promise<string | undefined> => {
    const server = await acceptors.get(name);
    return server && urlOf(scheme, server.address() as AddressInfo);
  };
  const apiServerUrl = await urlAt("apiServer", apiServer.tls === undefined ? "http" : "https");
  if (apiServerUrl === undefined) throw new Error("no worker listens for the API");
  const httpUrl = await urlAt("ingress.http", "http");
  const httpsUrl = await urlAt("ingress.https", "https");
  return {
    apiServerUrl,
    adminUrl: urlOf("http", adminAt),
    kubeletUrl: await urlAt("kubelet", kubelet?.tls === undefined ? "http" : "https"),
    ingress: httpUrl === undefined || httpsUrl === undefined ? undefined : { httpUrl, httpsUrl },
  };
}

/** Beside this file, compiled or not. */
function workerProgram(): URL {
  return new URL(`worker-main${path.extname(fileURLToPath(import.meta.url))}`, import.meta.url);
}

/** A killed worker leaves its file behind, so the next one has another. */
function adminSocketOf(folder: string, { process: child }: Worker): string {
  return path.join(folder, `${child.pid}.sock`);
}

function closeAcceptor(acceptor: Promise<Server>): void {
  void acceptor.then((server) => server.close()).catch(() => {});
}

/** Accepts and reads nothing: whoever gets the connection reads its first byte. */
function acceptAt({ address, port }: BoundAddress, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, onConnection);
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => {
      server.off("error", reject);
      resolve(server);
    });
  });
}
