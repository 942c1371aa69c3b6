import { StatusError } from "@sluice/client/internal/api/status";
import type { Quotas } from "../../access/policy/component.ts";
import type { Logger } from "../../observability/logger.ts";
import type { ListedSession } from "../../sessions/session-info.ts";
import type { PlaceAnswer } from "./calls.ts";

/**
 * How long viewers and joiners can ask a worker how its session ended. Past it the answer is
 * "unknown".
 */
const KEPT_OVER_MS = 5_000;
/** Ended sessions that are remembered for viewers. Past it the oldest is forgotten. */
const MAX_KEPT_OVER = 10_000;

/** The sessions that each worker runs. If a worker dies, the primary logs their ends. */
export class WorkerSessions<Worker> {
  /** Keyed by session, the oldest first. */
  readonly #over = new Map<string, { readonly worker: Worker; readonly overMs: number }>();
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
    const nowMs = performance.now();
    this.#over.set(id, { worker, overMs: nowMs });
    for (const [oldest, { overMs }] of this.#over) {
      if (nowMs - overMs < KEPT_OVER_MS && this.#over.size <= MAX_KEPT_OVER) return;
      this.#over.delete(oldest);
    }
  }

  /** The worker that runs the session with this id. */
  ownerOf(id: string): Worker | undefined {
    for (const [worker, sessions] of this.#running) if (sessions.has(id)) return worker;
    return undefined;
  }

  /**
   * The worker that runs the session, or ran it until just now: viewers have not seen all of its
   * output yet.
   */
  lastOwnerOf(id: string): Worker | undefined {
    const over = this.#over.get(id);
    const isKept = over !== undefined && performance.now() - over.overMs < KEPT_OVER_MS;
    return this.ownerOf(id) ?? (isKept ? over.worker : undefined);
  }

  /**
   * Logs the end of each session that was running, without byte counts, which only the worker knew.
   */
  gone(worker: Worker): void {
    const sessions = this.#running.get(worker);
    this.#running.delete(worker);
    for (const [id, over] of this.#over) if (over.worker === worker) this.#over.delete(id);
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

interface Place {
  readonly worker: object;
  /** Undefined until the quotas have counted the session. */
  giveBack: (() => void) | undefined;
}

/** Counts the sessions of all workers, so that limits apply to the gateway rather than to each process. */
export class SessionLimiter {
  readonly #maxSessions: number;
  readonly #quotas: Quotas;
  readonly #places = new Map<number, Place>();
  #lastPlace = 0;

  constructor(maxSessions: number, quotas: Quotas) {
    this.#maxSessions = maxSessions;
    this.#quotas = quotas;
  }

  get taken(): number {
    return this.#places.size;
  }

  async acquire(worker: object, user: string, namespace: string): Promise<PlaceAnswer> {
    if (this.#places.size >= this.#maxSessions) {
      return { refusal: "too many streaming sessions, please try again later", code: 429 };
    }
    this.#lastPlace += 1;
    const place = this.#lastPlace;
    const taken: Place = { worker, giveBack: undefined };
    this.#places.set(place, taken);
    try {
      taken.giveBack = await this.#quotas.take(user, namespace);
      // The worker may have died in the meantime.
      if (!this.#places.has(place)) taken.giveBack();
      return { place };
    } catch (error) {
      this.#places.delete(place);
      if (!(error instanceof StatusError)) throw error;
      return { refusal: error.status.message ?? error.message, code: error.code === 503 ? 503 : 429 };
    }
  }

  release(place: number): void {
    this.#places.get(place)?.giveBack?.();
    this.#places.delete(place);
  }

  /** A worker has died: releases its places. */
  giveBackAllOf(worker: object): void {
    for (const [place, { worker: holder }] of this.#places) if (holder === worker) this.release(place);
  }
}
