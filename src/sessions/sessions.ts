import { serviceUnavailable, tooManyRequests } from "../api/status.ts";
import type { Plan } from "./plan.ts";
import type { CauseOfOurs } from "./session-end.ts";
import type { Subresource } from "./streaming-request.ts";

const RETRY_AFTER_SECONDS = 10;

/** Of a session through a proxy subresource: the API server finds the node, and bytes pass through unread. */
export const PROXIED = { kind: "proxied", reason: "proxy-subresource" } as const;

/** What is known of a session from the moment it is admitted. */
export interface SessionInfo {
  readonly id: string;
  readonly subresource: Subresource;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly user: string;
  /** The user whose credentials came, where that one impersonates. */
  readonly requestedBy?: string;
  readonly plan: Plan | typeof PROXIED;
  readonly startedAt: Date;
}

/** A session that is being carried. */
export interface RunningSession {
  /** Absent: a forwarded upgrade that is no exec, attach or port-forward; it ends with the others, and no list shows it. */
  readonly info?: SessionInfo | undefined;
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
  cut(cause: CauseOfOurs, message: string): void;
}

/** Is notified of sessions that lists show, so that another process can report those that this one takes with it. */
export interface SessionWatcher {
  began(info: SessionInfo): void;
  over(id: string): void;
}

/**
 * Every session of this process: admits them up to a bound, lists them, ends them. A place is acquired before the upstream is dialled and
 * released when the session is over, or refused.
 */
export class Sessions {
  readonly #maxSessions: number;
  readonly #running = new Set<RunningSession>();
  readonly #emptied: (() => void)[] = [];
  #admitted = 0;
  #isDraining = false;
  #watcher: SessionWatcher | undefined;

  constructor(maxSessions: number) {
    this.#maxSessions = maxSessions;
  }

  /** `watcher`: of the sessions that begin from now on. */
  watch(watcher: SessionWatcher | undefined): void {
    this.#watcher = watcher;
  }

  /** Acquires a place, or throws a StatusError: 503 while draining, 429 at the limit. The result releases it, once. */
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

  add(session: RunningSession): void {
    this.#running.add(session);
    if (session.info !== undefined) this.#watcher?.began(session.info);
  }

  delete(session: RunningSession): void {
    if (this.#running.delete(session) && session.info !== undefined) this.#watcher?.over(session.info.id);
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
    return Array.from(this.#running).flatMap(({ info, downstreamBytes, upstreamBytes }) =>
      info === undefined ? [] : [{ ...info, downstreamBytes, upstreamBytes }],
    );
  }

  /** Admits no session any more. Resolves when the last one is over. */
  drain(): Promise<void> {
    this.#isDraining = true;
    return this.#admitted === 0 ? Promise.resolve() : new Promise((resolve) => this.#emptied.push(resolve));
  }

  /** Ends what still runs; each client gets a failure in its own protocol. */
  endAll(message: string): void {
    for (const session of [...this.#running]) session.cut("shutdown", message);
  }
}
