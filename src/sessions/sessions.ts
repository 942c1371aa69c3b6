import { serviceUnavailable, tooManyRequests } from "../api/status.ts";
import type { SessionReport, StreamingSession } from "./carriers/session.ts";
import type { Plan } from "./plan.ts";
import type { Subresource } from "./streaming-request.ts";

const RETRY_AFTER_SECONDS = 10;

/** What is known of a session from the moment it is admitted. */
export interface SessionInfo {
  readonly id: string;
  readonly subresource: Subresource;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly user: string;
  readonly plan: Plan;
  readonly startedAt: Date;
}

interface RunningSession {
  readonly info: SessionInfo;
  readonly session: StreamingSession;
}

/**
 * Every session of this process: admits them up to a bound, lists them, ends them. A place is taken before the
 * upstream is dialled and given back when the session is over or never came to be.
 */
export class Sessions {
  readonly #maxSessions: number;
  readonly #running = new Map<string, RunningSession>();
  readonly #unlisted = new Set<StreamingSession>();
  readonly #emptied: (() => void)[] = [];
  #admitted = 0;
  #isDraining = false;

  constructor(maxSessions: number) {
    this.#maxSessions = maxSessions;
  }

  /** Takes a place, or throws a StatusError: 503 while draining, 429 at the limit. The result gives the place back, once. */
  admit(): () => void {
    if (this.#isDraining) throw serviceUnavailable("the gateway is shutting down");
    if (this.#admitted >= this.#maxSessions) {
      throw tooManyRequests("too many streaming sessions, please try again later", RETRY_AFTER_SECONDS);
    }
    this.#admitted += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#admitted -= 1;
      if (this.#admitted === 0) for (const resolve of this.#emptied.splice(0)) resolve();
    };
  }

  add(info: SessionInfo, session: StreamingSession): void {
    this.#running.set(info.id, { info, session });
  }

  delete(id: string): void {
    this.#running.delete(id);
  }

  /** A forwarded upgrade that is no exec, attach or port-forward: it ends with the others, and no list shows it. */
  addUnlisted(session: StreamingSession): void {
    this.#unlisted.add(session);
  }

  deleteUnlisted(session: StreamingSession | undefined): void {
    if (session !== undefined) this.#unlisted.delete(session);
  }

  /** Admitted sessions, those that are still being set up included. */
  get size(): number {
    return this.#admitted;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** For /debug/sessions: no command line, no header, no payload. */
  list(): (SessionInfo & { downstreamBytes: number; upstreamBytes: number })[] {
    return Array.from(this.#running.values(), ({ info, session }) => ({
      ...info,
      downstreamBytes: session.traffic.downstreamBytes,
      upstreamBytes: session.traffic.upstreamBytes,
    }));
  }

  /** Admits nobody any more. Resolves when the last session is over. */
  drain(): Promise<void> {
    this.#isDraining = true;
    return this.#admitted === 0 ? Promise.resolve() : new Promise((resolve) => this.#emptied.push(resolve));
  }

  /** Ends what still runs; each client is told the truth in its own protocol. */
  endAll(message: string): void {
    for (const { session } of [...this.#running.values()]) session.end("shutdown", message);
    for (const session of [...this.#unlisted]) session.end("shutdown", message);
  }
}

export type { SessionReport };
