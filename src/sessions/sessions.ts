import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { inSlices } from "../lifecycle/slices.ts";
import type { ObservedSession, SessionObserver } from "./observers/session-observer.ts";
import type { InputResult } from "./session.ts";
import { newReplicaId, newSessionId } from "./session-id.ts";
import { type ListedSession, listed } from "./session-info.ts";

const RETRY_AFTER_SECONDS = 10;

/** A session that is running. */
export interface RunningSession extends ObservedSession {
  /** True once nothing is carried any more; it is listed until its end is reported. */
  readonly isOver: boolean;
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
  /**
   * Shows the session to one more observer until the returned function is called. It misses the
   * rest of a WebSocket message that passes through, and all streams of a SPDY port-forward.
   */
  observe(observer: SessionObserver): () => void;
  /**
   * Types into the command's stdin, as this joiner. Without bytes: tells whether the command reads
   * any.
   */
  input(bytes: Uint8Array, by: string): InputResult;
  /** Notifies the session's observers, and its client if that has a terminal. */
  joined(user: string, hasJoined: boolean): void;
}

/** Is notified of listed sessions, so that another process can report their ends if this one dies. */
export interface SessionWatcher {
  began(info: ListedSession): void;
  over(id: string): void;
}

/**
 * All sessions of this process: admits them up to a limit, lists them, ends them. A place is acquired
 * before the upstream is dialled, and released when the session ends or is refused.
 */
export class Sessions {
  /** The id of this process's replica, with which the ids of its sessions begin. */
  readonly replica: string;
  readonly #maxSessions: number;
  readonly #running = new Set<RunningSession>();
  readonly #emptied: (() => void)[] = [];
  #admitted = 0;
  #isDraining = false;
  #watcher: SessionWatcher | undefined;
  #terminalBegan: ((session: RunningSession) => void) | undefined;

  constructor(maxSessions: number, replica: string = newReplicaId()) {
    this.#maxSessions = maxSessions;
    this.replica = replica;
  }

  /** Notifies `watcher` of sessions that begin from now on. */
  watch(watcher: SessionWatcher | undefined): void {
    this.#watcher = watcher;
  }

  /** `began` is called for each session with a terminal before its first byte. */
  onTerminal(began: (session: RunningSession) => void): void {
    this.#terminalBegan = began;
  }

  /**
   * Acquires a place, or throws a StatusError: 503 while draining, 429 at the limit. Call the result
   * once to release it.
   */
  admit(): () => void {
    if (this.#isDraining) throw WIRE_ERRORS["shutting-down"].streaming();
    if (this.#admitted >= this.#maxSessions) {
      throw WIRE_ERRORS["too-many-sessions"].streaming({ seconds: RETRY_AFTER_SECONDS });
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

  /** The id for a new session of this process. */
  newId(startedAt?: Date): string {
    return newSessionId(this.replica, startedAt);
  }

  add(session: RunningSession): void {
    this.#running.add(session);
    if (session.info?.details?.tty === true) this.#terminalBegan?.(session);
    if (session.info !== undefined) this.#watcher?.began(listed(session.info));
  }

  delete(session: RunningSession): void {
    if (this.#running.delete(session) && session.info !== undefined) this.#watcher?.over(session.info.id);
  }

  /** The running session with this id; undefined if there is none, or lists do not show it. */
  find(id: string): RunningSession | undefined {
    for (const session of this.#running) if (session.info?.id === id) return session;
    return undefined;
  }

  /** The number of admitted sessions, including those that have not started yet. */
  get size(): number {
    return this.#admitted;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** For /debug/sessions. Contains no command line, no header but User-Agent, and no payload. */
  list(): (ListedSession & { downstreamBytes: number; upstreamBytes: number })[] {
    return Array.from(this.#running).flatMap(({ info, downstreamBytes, upstreamBytes }) =>
      info === undefined ? [] : [{ ...listed(info), downstreamBytes, upstreamBytes }],
    );
  }

  /** Admits no new sessions. Resolves when the last one has ended. */
  drain(): Promise<void> {
    this.#isDraining = true;
    return this.#admitted === 0 ? Promise.resolve() : new Promise((resolve) => this.#emptied.push(resolve));
  }

  /**
   * Ends the running sessions in slices, each with a failure in its client's protocol. The first
   * clients hear of it while the last sessions still run.
   */
  endAll(message: string): Promise<void> {
    return inSlices(this.#ending(message));
  }

  *#ending(message: string): Generator<void, void> {
    for (const session of [...this.#running]) {
      if (this.#running.has(session)) session.cut("shutdown", message);
      yield;
    }
  }
}

/** The session with this id, in the first of these registries that has it. */
export function findSession(
  registries: readonly Pick<Sessions, "find">[],
  id: string,
): RunningSession | undefined {
  for (const sessions of registries) {
    const found = sessions.find(id);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * What only the process that carries a session knows. No list has it: a command line may contain
 * secrets.
 */
export interface SessionFacts {
  /** Empty unless it is an exec. */
  readonly command: readonly string[];
  /** The user's groups when the session began. */
  readonly groups: readonly string[];
}
