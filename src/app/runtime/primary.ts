import path from "node:path";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { openAuditLog } from "../../access/audit/component.ts";
import { buildQuotas } from "../../access/policy/component.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { listenerPorts } from "../../config/sections/listeners.ts";
import { type Departure, MAX_STOP_MS, Supervisor } from "../../lifecycle/supervisor.ts";
import { startListener } from "../../listeners/component.ts";
import { createLogger, type Logger } from "../../observability/logger.ts";
import { MergedMetrics } from "../../observability/merged-metrics.ts";
import type { ReloadMetrics } from "../../observability/operations-metrics.ts";
import type { EndRequest, EndResult } from "../../sessions/session-actions.ts";
import type { RunningGateway } from "../app.ts";
import { readyFields, urlsOf } from "../open-listeners.ts";
import { observeFaults } from "../uncaught-exceptions.ts";
import { Acceptors } from "./acceptors.ts";
import { Lineage, type SocketFolder } from "./inheritance.ts";
import { type WorkerConfiguration, WorkerMesh } from "./worker-mesh.ts";
import { KILL_AFTER_MS, type Worker } from "./worker-pool.ts";
import { buildWorkersAdmin } from "./workers-admin.ts";

interface RunningWorkers
  extends Pick<RunningGateway, "apiServerUrl" | "adminUrl" | "listening" | "shutDown"> {
  readonly reloads: ReloadMetrics;
  /**
   * Every worker applies the fields that can change without a restart. Workers that start later use
   * the new configuration, too.
   */
  reload(configuration: GatewayConfiguration, text: string): Promise<void>;
  /** Works like `SessionDirectory`. */
  endSession(request: EndRequest): Promise<EndResult>;
}

interface WorkersOptions {
  readonly logger?: Logger;
  readonly app?: Supervisor;
  readonly lineage?: Lineage;
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
  {
    logger = createLogger(configuration.logging),
    app = supervisorOf(logger),
    lineage = new Lineage(),
  }: WorkersOptions = {},
): Promise<RunningWorkers> {
  const { limits, audit, timeouts, listeners } = configuration;
  const metrics = new MergedMetrics();
  const mesh = new WorkerMesh({
    configuration,
    count,
    forWorkers,
    replicaId: lineage.replicaId,
    metrics,
    logger,
    quotas: () => quotas.started.quotas,
    auditLog: () => auditLog?.started,
    acceptors: () => acceptors.started,
    adminSocketOf: (worker) => adminSocketOf(folder.started, worker),
  });
  const { pool } = mesh;

  app.add("faults", () => ({ stop: observeFaults(logger, metrics) }));
  const quotas = app.add("quotas", () => buildQuotas(configuration, metrics, logger));
  const folder = app.add("socket folder", () => lineage.openFolder());
  const { log } = audit;
  const auditLog = log && app.add("audit log", () => openAuditLog(log));
  const acceptors = app.add(
    "acceptors",
    () => new Acceptors(lineage.sockets.listen, (name, socket) => mesh.accept(name, socket)),
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
  app.add("workers", () => mesh.start());

  try {
    await app.start();
    const { at } = adminListener.started;
    const urls = urlsOf(listenerPorts(listeners), (name) =>
      name === "admin" ? at : acceptors.started.addressOf(name),
    );
    logger.info({ ...readyFields(urls), workers: count }, "the gateway is ready");
    return {
      apiServerUrl: urls.apiServer,
      adminUrl: urls.admin ?? "",
      listening: urls,
      reloads: metrics.reloads,
      reload: async ({ policy: { limits: sessionLimits } }, text) => {
        quotas.started.quotas.replaceLimits?.(sessionLimits);
        await mesh.reload(text);
      },
      endSession: (request) => mesh.endSession(request),
      shutDown: async (departure: Departure = { delayMs: timeouts.shutdownDelayMs, hasSuccessor: false }) => {
        const notStopped = await app.shutDown(timeouts.shutdownGracePeriodMs, departure);
        logger.info(notStopped.length === 0 ? {} : { notStopped }, "the gateway has stopped");
      },
    };
  } catch (error) {
    await app.stop();
    const message = systemErrorText(error);
    throw new ConfigurationError([{ source: "workers", line: 0, column: 0, path: "", message }]);
  }
}

/** Stopping also waits for workers that do not exit. */
function supervisorOf(logger: Logger): Supervisor {
  return new Supervisor(logger, { maxStopMs: MAX_STOP_MS + KILL_AFTER_MS });
}

/**
 * Contains the process id: a killed worker leaves its socket file behind, so its successor needs
 * another name.
 */
function adminSocketOf(folder: SocketFolder, { process: child }: Worker): string {
  return path.join(folder.path, `${child.pid}.sock`);
}
