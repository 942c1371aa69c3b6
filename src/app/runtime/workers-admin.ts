import { type IncomingMessage, type Server, type ServerResponse, request as sendRequest } from "node:http";
import {
  type AdminServerOptions,
  type AdminSession,
  createAdminServer,
  type MissingSessions,
  type SessionLists,
} from "../../admin/admin-server.ts";
import { type DescribedNode, mergeNodes } from "../../nodes/describe-nodes.ts";
import type { MergedMetrics, MetricSnapshot } from "../../observability/merged-metrics.ts";
import type { Worker, WorkerPool } from "./worker-pool.ts";

interface WorkersAdminParts extends Pick<AdminServerOptions, "limits" | "logger"> {
  readonly pool: Pick<WorkerPool, "workers">;
  readonly metrics: MergedMetrics;
  readonly allowedHosts: readonly string[];
  readonly lifeChecks: AdminServerOptions["readinessChecks"];
  /** The Unix socket of the worker's own admin listener. */
  adminSocketOf(worker: Worker): string;
}

/**
 * The admin listener's view of all workers as one process. If all workers would answer the same,
 * one of them answers.
 */
export function buildWorkersAdmin({
  pool,
  metrics,
  limits,
  allowedHosts,
  lifeChecks,
  adminSocketOf,
  logger,
}: WorkersAdminParts): Server {
  const collect = async (): Promise<void> => {
    const seen = async (worker: Worker) =>
      metrics.seen(
        worker,
        (await soon(worker.link.request("metrics", undefined))) as readonly MetricSnapshot[],
      );
    // For a worker that does not answer, its last answer is shown.
    await Promise.allSettled(pool.workers.filter(({ isTaking }) => isTaking).map(seen));
  };
  return createAdminServer({
    metrics: {
      expose: () => collect().then(() => metrics.expose()),
      exposeOpenMetrics: () => collect().then(() => metrics.exposeOpenMetrics()),
    },
    limits,
    allowedHosts,
    readinessChecks: {
      ...lifeChecks,
      workers: () => (pool.workers.some(({ isTaking }) => isTaking) ? undefined : "no worker serves"),
    },
    listSessions: () => sessionsOf(pool),
    listAllSessions: async () => {
      const own = await sessionsOf(pool);
      const worker = pool.workers.find(({ isTaking }) => isTaking);
      if (worker === undefined) return own;
      return worker.link.request("allSessions", own);
    },
    listNodes: async (name) => {
      const ask = async ({ link }: Worker) => (await link.request("nodes", name)) as readonly DescribedNode[];
      const lists = await Promise.allSettled(pool.workers.map(ask));
      return mergeNodes(lists.map((list) => (list.status === "fulfilled" ? list.value : [])));
    },
    listProbes: async () => {
      const lists = await Promise.allSettled(
        pool.workers.map(
          async ({ link }) => (await soon(link.request("probes", undefined))) as readonly object[],
        ),
      );
      return lists.flatMap((list) => (list.status === "fulfilled" ? list.value : []));
    },
    others: (request, response) => {
      const worker = pool.workers.find(({ isTaking }) => isTaking);
      if (worker === undefined) response.writeHead(503).end("no worker serves\n");
      else passOn(request, response, adminSocketOf(worker));
    },
    logger,
  });
}

/**
 * The sessions of all workers, and the names of workers that do not answer in time. Never rejects.
 */
export async function sessionsOf({ workers }: Pick<WorkerPool, "workers">): Promise<SessionLists> {
  const partial: MissingSessions[] = [];
  const lists = await Promise.all(
    workers.map(async ({ link, index }) => {
      try {
        const sessions = await soon(link.request("sessions", undefined), MAX_LIST_MS);
        return (sessions as readonly AdminSession[]).map((session) => ({ ...session, worker: index }));
      } catch {
        partial.push({ worker: index, problem: "the worker does not answer" });
        return [];
      }
    }),
  );
  return { sessions: lists.flat(), partial };
}

/** How long operators wait for a stuck worker before they see the others' data. */
const ANSWER_MS = 2_000;
/**
 * How long a worker may take to list its sessions, less than `timeouts.peerList`. Past it `partial`
 * names the worker.
 */
const MAX_LIST_MS = 700;

function soon<T>(asked: Promise<T>, withinMs: number = ANSWER_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("a worker does not answer")), withinMs);
  });
  return Promise.race([asked, late]).finally(() => clearTimeout(timer));
}

function passOn({ method, url }: IncomingMessage, response: ServerResponse, socketPath: string): void {
  const passed = sendRequest({ socketPath, method, path: url }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
    answer.on("error", () => response.destroy());
  });
  passed.on("error", () => {
    if (response.headersSent) response.destroy();
    else response.writeHead(502).end("the worker does not answer\n");
  });
  passed.end();
}
