import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { isSingleBinary, ownProgram } from "@sluice/client/internal/config/own-files";
import { openAuditLog } from "../../access/audit/component.ts";
import { buildQuotas } from "../../access/policy/component.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { type Departure, MAX_STOP_MS, Supervisor } from "../../lifecycle/supervisor.ts";
import { startListener } from "../../listeners/component.ts";
import { networkOf } from "../../listeners/connection-cap.ts";
import { EdgeRules } from "../../listeners/edge-rules.ts";
import { proxiesByListener } from "../../listeners/proxy-protocol.ts";
import { type ListenAddress, urlOf } from "../../net/listen.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import { MergedMetrics } from "../../observability/merged-metrics.ts";
import type { ReloadMetrics } from "../../observability/operations-metrics.ts";
import type { EndRequest, EndResult } from "../../sessions/session-actions.ts";
import type { RunningGateway } from "../app.ts";
import { type ListenerUrls, urlsByListener } from "../runtime.ts";
import { observeFaults } from "../uncaught-exceptions.ts";
import { Acceptors } from "./acceptors.ts";
import type { WorkerStart } from "./calls.ts";
import { ConnectionDispatcher } from "./connection-dispatcher.ts";
import { endWithin } from "./end-within.ts";
import { KeptFiles, type KeptKind } from "./kept-files.ts";
import { Lineage, type SocketFolder } from "./lineage.ts";
import { MAX_SILENT_BEATS, PROBER_BEAT_MS, ProberWatchdog } from "./prober-watchdog.ts";
import { SessionLimiter } from "./session-limiter.ts";
import { SharedProbing } from "./shared-probing.ts";
import { KILL_AFTER_MS, type Worker, WorkerPool } from "./worker-pool.ts";
import { WorkerSessions } from "./worker-sessions.ts";
import { buildWorkersAdmin, sessionsOf } from "./workers-admin.ts";

/** OpenSSL's layout: 16 bytes of key name, 16 of HMAC key, 16 of AES key. */
const TICKET_KEY_BYTES = 48;

/** The configuration for workers; the primary fills in the rest of `WorkerStart`. */
type WorkerConfiguration = Pick<WorkerStart, "configurationText" | "configurationFile" | "flags">;

export interface RunningWorkers
  extends Pick<RunningGateway, "apiServerUrl" | "adminUrl" | "listening" | "shutDown"> {
  readonly reloads: ReloadMetrics;
  /**
   * Every worker applies the fields that can change without a restart; workers that start later use the
   * new configuration, too.
   */
  reload(configuration: GatewayConfiguration, text: string): Promise<void>;
  /** As SessionDirectory. */
  endSession(request: EndRequest): Promise<EndResult>;
}

/**
 * The gateway as several processes: this one accepts connections, counts sessions, writes the audit
 * log and serves operators. Throws ConfigurationError if a worker cannot start with this
 * configuration.
 */
export async function startWorkers(
  configuration: GatewayConfiguration,
  count: number,
  forWorkers: WorkerConfiguration,
  logger: Logger = createLogger(configuration.logging),
  app: Supervisor = new Supervisor(logger, { maxStopMs: MAX_STOP_MS + KILL_AFTER_MS }),
  lineage: Lineage = new Lineage(),
): Promise<RunningWorkers> {
  const { limits, audit, timeouts, listeners } = configuration;
  const metrics = new MergedMetrics();
  const edge = new EdgeRules(configuration.edge);
  const proxies = proxiesByListener(listeners);
  const places = new SessionLimiter(limits.maxConcurrentSessions, {
    take: (user, namespace) => quotas.started.quotas.take(user, namespace),
  });
  const kept: Readonly<Record<KeptKind, KeptFiles>> = { manifests: new KeptFiles(), named: new KeptFiles() };
  const ticketKeys = randomBytes(TICKET_KEY_BYTES).toString("base64");
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
    // Only the worker can read the client's address behind a trusted proxy, and counts it.
    networkOf: (address, listener) =>
      edge.isTrustedProxy(address) || proxies.get(listener)?.has(address) === true
        ? undefined
        : networkOf(address),
    onRefused: () => metrics.connectionRefused(),
    logger,
  });
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
  const workerSessions = new WorkerSessions<Worker>(logger);
  const endInWorkers = async (request: EndRequest): Promise<EndResult> => {
    const owner = workerSessions.ownerOf(request.id);
    return owner === undefined ? "unknown" : endWithin(1, owner.link.request("endSession", request));
  };
  const countReady = (): void => metrics.workersReady(pool.workers.filter(({ isTaking }) => isTaking).length);
  const pool: WorkerPool = new WorkerPool({
    count,
    fork: () => fork(workerProgram(), { serialization: "advanced" }),
    startOf: (worker) => ({
      ...forWorkers,
      ticketKeys,
      replicaId: lineage.replicaId,
      isFirst: worker.index === 0,
      workers: count,
      adminSocket: adminSocketOf(folder.started, worker),
    }),
    handlersFor: (worker) => ({
      listen: ({ name, ...where }) => acceptors.started.listen(name, where),
      report: ({ closed, sessions }) => {
        worker.sessions = sessions;
        handOver.closed(closed);
      },
      received: (id) => handOver.received(id),
      sessionBegan: (info) => workerSessions.began(worker, info),
      sessionOver: (id) => workerSessions.over(worker, id),
      takePlace: ({ user, namespace }) => places.acquire(worker, user, namespace),
      giveBack: (place) => {
        places.release(place);
        if (isDraining) void closeListeners();
      },
      wantsFiles: ({ kind, digest }) => kept[kind].wants(digest),
      keepFiles: ({ kind, files }) => kept[kind].keep(files),
      recallFiles: (kind) => kept[kind].files,
      replicaSessions: () => sessionsOf(pool),
      endSession: endInWorkers,
      audit: async (lines) => auditLog?.started.deliver(lines),
      found: (findings) => probing.found(worker, findings),
    }),
    shutdownGracePeriodMs: timeouts.shutdownGracePeriodMs,
    logger,
    onReady: (worker) => {
      countReady();
      void reloadWorker(worker);
      // Before the worker gets its first connection.
      probing.ready(worker);
      handOver.resume();
    },
    onGone: (worker, isExpected) => {
      places.giveBackAllOf(worker);
      workerSessions.gone(worker);
      if (isDraining) void closeListeners();
      const { exitCode, signalCode } = worker.process;
      handOver.forget(worker, signalCode !== null || exitCode !== 0);
      probing.gone(worker, isExpected);
      metrics.gone(worker, isExpected ? "shutdown" : "crash");
      countReady();
    },
  });

  let isDraining = false;
  /**
   * Closes the front door. The other listeners stay open while sessions run, to tell clients that
   * sessions go elsewhere.
   */
  const closeListeners = async (): Promise<void> => {
    // `places` is more current than the session counts that workers report.
    const areOver = places.taken === 0;
    await acceptors.started.close((name) => areOver || name.startsWith("ingress."));
  };

  app.add("faults", () => ({ stop: observeFaults(logger, metrics) }));
  const quotas = app.add("quotas", () => buildQuotas(configuration, metrics, logger));
  const folder = app.add("socket folder", () => lineage.openFolder());
  const { log } = audit;
  const auditLog = log && app.add("audit log", () => openAuditLog(log));
  const acceptors = app.add(
    "acceptors",
    () => new Acceptors(lineage.sockets.listen, (name, socket) => handOver.accept(name, socket)),
  );
  const adminListener = app.add("admin listener", () =>
    startListener(
      buildWorkersAdmin({
        allowedHosts: listeners.admin.allowedHosts,
        pool,
        metrics,
        limits,
        lifeChecks: { ...app.healthChecks, ...app.lifeChecks },
        adminSocketOf: (worker) => adminSocketOf(folder.started, worker),
        logger,
      }),
      (server) => lineage.sockets.listen(server, "admin", listeners.admin),
    ),
  );
  app.add("workers", async () => {
    await pool.start();
    return {
      enterLameDuck: (hasSuccessor) => pool.enterLameDuck(hasSuccessor),
      drain: async () => {
        isDraining = true;
        await closeListeners();
        await pool.shutDown();
      },
      stop: async () => {
        await pool.shutDown();
        proberWatch.stop();
      },
    };
  });

  try {
    await app.start();
    const urls = listenerUrls(listeners, adminListener.started.at, acceptors.started);
    logger.info({ ...urls, workers: count }, "the gateway is ready");
    return {
      apiServerUrl: urls.apiServerUrl,
      adminUrl: urls.adminUrl,
      listening: urlsByListener(urls),
      reloads: metrics.reloads,
      reload: async ({ policy: { limits: sessionLimits } }, text) => {
        quotas.started.quotas.replaceLimits?.(sessionLimits);
        reloadedText = text;
        await Promise.all(pool.workers.filter(({ isTaking }) => isTaking).map(reloadWorker));
      },
      endSession: async (request) => {
        const worker = pool.workers.find(({ isTaking }) => isTaking);
        const result = await endInWorkers(request);
        if (result !== "unknown" || worker === undefined) return result;
        return endWithin(4, worker.link.request("endElsewhere", request));
      },
      shutDown: async (departure: Departure = { delayMs: timeouts.shutdownDelayMs, hasSuccessor: false }) => {
        const notStopped = await app.shutDown(timeouts.shutdownGracePeriodMs, departure);
        logger.info(notStopped.length === 0 ? {} : { notStopped }, "the gateway has stopped");
      },
    };
  } catch (error) {
    await app.stop();
    const message = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError([{ source: "workers", line: 0, column: 0, path: "", message }]);
  }
}

/** The URLs of the listeners that workers opened; by now they have opened all. */
function listenerUrls(
  { apiServer, kubelet, peers }: GatewayConfiguration["listeners"],
  adminAt: ListenAddress,
  acceptors: Acceptors,
): ListenerUrls {
  const urlAt = (name: string, scheme: "http" | "https"): string | undefined => {
    const at = acceptors.addressOf(name);
    return at && urlOf(scheme, at);
  };
  const httpUrl = urlAt("ingress.http", "http");
  const httpsUrl = urlAt("ingress.https", "https");
  return {
    apiServerUrl: urlAt("apiServer", apiServer?.tls === undefined ? "http" : "https"),
    adminUrl: urlOf("http", adminAt),
    kubeletUrl: urlAt("kubelet", kubelet?.tls === undefined ? "http" : "https"),
    peersUrl: peers && urlAt("peers", "https"),
    ingress: httpUrl === undefined || httpsUrl === undefined ? undefined : { httpUrl, httpsUrl },
  };
}

/**
 * For `fork`: a file, or the first argument that starts a worker from the single binary
 * (src/cli/command-line.ts).
 */
function workerProgram(): string {
  return isSingleBinary ? "worker-main" : fileURLToPath(ownProgram("worker-main", import.meta.url));
}

/** Named after the process: a killed worker leaves its socket file behind, so its successor needs another. */
function adminSocketOf(folder: SocketFolder, { process: child }: Worker): string {
  return path.join(folder.path, `${child.pid}.sock`);
}
