import type { Logger } from "../../observability/logger.ts";
import type { ListedSession } from "../../sessions/session-info.ts";

/** The sessions that each worker runs. If a worker dies, the primary logs their ends. */
export class WorkerSessions<Worker> {
  readonly #running = new Map<Worker, Map<string, ListedSession>>();
  readonly #logger: Pick<Logger, "info">;

  constructor(logger: Pick<Logger, "info">) {
    this.#logger = logger;
  }

  began(worker: Worker, info: ListedSession): void {
    const sessions = this.#running.get(worker) ?? new Map<string, ListedSession>();
    this.#running.set(worker, sessions);
    sessions.set(info.id, info);
  }

  over(worker: Worker, id: string): void {
    this.#running.get(worker)?.delete(id);
  }

  /** The worker that runs the session with this id. */
  ownerOf(id: string): Worker | undefined {
    for (const [worker, sessions] of this.#running) if (sessions.has(id)) return worker;
    return undefined;
  }

  /** Logs an end for each session that was running, without byte counts, which only the worker knew. */
  gone(worker: Worker): void {
    const sessions = this.#running.get(worker);
    this.#running.delete(worker);
    for (const { plan, startedAt, ...session } of sessions?.values() ?? []) {
      const durationSeconds = (Date.now() - startedAt.getTime()) / 1_000;
      this.#logger.info(
        {
          session: { ...session, plan: plan.kind, reason: plan.reason },
          endedBy: "gateway",
          cause: "internal-error",
          code: 500,
          reason: "the worker that carried the session died",
          durationSeconds,
        },
        "session ended",
      );
    }
  }
}
