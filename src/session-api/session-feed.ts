import { randomInt } from "node:crypto";
import type { AdminSession, MissingSessions, SessionLists } from "../admin/admin-server.ts";
import type { ObjectSource, SourceChange } from "../api/read-only-server/object-source.ts";
import { type StreamingSession, streamingSessionOf } from "./streaming-session.ts";

/** How often sessions are listed while a client watches. Changes reach watches this late. */
export const WATCH_PERIOD_MS = 1_000;
/** At most this part of the time is spent on lists for watches: longer lists come less often. */
const WATCH_SHARE = 0.1;
/** A session that carries bytes is reported to watches as modified, but not again within this time. */
export const MODIFIED_PERIOD_MS = 10_000;
/** Sessions that one list reports as modified. Past it the next list does, those that wait longest first. */
export const MAX_MODIFIED_AT_ONCE = 500;
/** Changes that watches may still ask for. Past it: 410, and the client lists again. */
export const MAX_REMEMBERED_CHANGES = 20_000;

/** The sessions of all replicas, listed now. */
export type ListSessions = () => Promise<SessionLists>;

interface Change {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly session: AdminSession;
  readonly resourceVersion: number;
}

interface Known {
  readonly session: AdminSession;
  /** The version at which watches last heard of it, when, and how it was. */
  readonly version: number;
  readonly reportedMs: number;
  readonly reported: AdminSession;
}

/**
 * All sessions of the gateway as this process last listed them, and how they changed. Versions begin
 * at random, so that another process's version is not mistaken for one of this process.
 */
export class SessionFeed implements ObjectSource {
  readonly #list: ListSessions;
  readonly #nowMs: () => number;
  readonly #listeners = new Set<() => void>();
  #known = new Map<string, Known>();
  #changes: Change[] = [];
  #version = randomInt(2 ** 32, 2 ** 47);
  #firstVersion = this.#version;
  #partial: SessionLists["partial"] = [];
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(list: ListSessions, nowMs: () => number = () => performance.now()) {
    this.#list = list;
    this.#nowMs = nowMs;
  }

  get resourceVersion(): number {
    return this.#version;
  }

  /** The processes that did not answer the last list. Their sessions are those of the list before. */
  get partial(): SessionLists["partial"] {
    return this.#partial;
  }

  /** Lists what runs now. Calls that come while a list is collected share the next one. */
  refresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#collect().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.refresh();
      });
    return this.#next;
  }

  get(_kind: string, namespace: string, name: string): StreamingSession | undefined {
    const known = this.#known.get(name);
    return known?.session.namespace === namespace ? objectOf(known) : undefined;
  }

  list(_kind: string, namespace?: string): readonly StreamingSession[] {
    return this.sorted(namespace).map(objectOf);
  }

  /** By namespace and name, as API servers list. */
  sorted(namespace?: string): readonly Known[] {
    const all = [...this.#known.values()];
    const wanted =
      namespace === undefined ? all : all.filter(({ session }) => session.namespace === namespace);
    return wanted.sort((one, other) => compareKeys(one.session, other.session));
  }

  subscribe(listener: () => void): () => void {
    // Two watches may share a function.
    const own = (): void => listener();
    this.#listeners.add(own);
    this.#schedule(0);
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  changesAfter(version: number): readonly SourceChange[] | undefined {
    if (version < this.#firstVersion || version > this.#version) return undefined;
    return this.#changes.slice(version - this.#firstVersion).map(({ type, session, resourceVersion }) => {
      // As in etcd, a deletion's object has the deletion's version.
      const object = streamingSessionOf(session, resourceVersion);
      // What selectors select by never changes.
      return { type, object, ...(type !== "ADDED" && { previous: object }), resourceVersion };
    });
  }

  stop(): void {
    this.#listeners.clear();
    clearTimeout(this.#timer);
  }

  #schedule(tookMs: number): void {
    if (this.#timer !== undefined || this.#listeners.size === 0) return;
    const waitMs = Math.max(WATCH_PERIOD_MS, tookMs / WATCH_SHARE);
    this.#timer = setTimeout(() => {
      const startedMs = performance.now();
      const listed = this.refresh().catch(() => {});
      void listed.then(() => {
        this.#timer = undefined;
        this.#schedule(performance.now() - startedMs);
      });
    }, waitMs).unref();
  }

  async #collect(): Promise<void> {
    const { sessions, partial } = await this.#list();
    this.#partial = partial;
    const silent = new Set(partial.map(holderOf));
    const nowMs = this.#nowMs();
    const before = this.#known;
    const after = new Map<string, Known>();
    for (const known of before.values()) {
      const { id, replica } = known.session;
      if (silent.has(holderOf(known.session)) || silent.has(replica ?? "")) after.set(id, known);
    }
    for (const session of sessions) {
      // Without a namespace it can be in no path (docs/sessions.md).
      if (session.namespace === "") continue;
      const known = before.get(session.id);
      after.set(
        session.id,
        known === undefined ? this.#changed("ADDED", session, nowMs) : { ...known, session },
      );
    }
    for (const { session } of dueAt(nowMs, after)) {
      after.set(session.id, this.#changed("MODIFIED", session, nowMs));
    }
    for (const [id, known] of before) if (!after.has(id)) this.#changed("DELETED", known.session, nowMs);
    this.#known = after;
    if (this.#changes.length > MAX_REMEMBERED_CHANGES) {
      this.#changes = this.#changes.slice(-MAX_REMEMBERED_CHANGES);
      this.#firstVersion = this.#version - this.#changes.length;
    }
    for (const listener of this.#listeners) listener();
  }

  #changed(type: Change["type"], session: AdminSession, reportedMs: number): Known {
    const version = this.#version + 1;
    this.#version = version;
    this.#changes.push({ type, session, resourceVersion: version });
    return { session, version, reported: session, reportedMs };
  }
}

/** The sessions that changed and may be reported now, those that wait longest first. */
function dueAt(nowMs: number, all: ReadonlyMap<string, Known>): readonly Known[] {
  const due = [...all.values()].filter(
    ({ session, reported, reportedMs }) =>
      nowMs - reportedMs >= MODIFIED_PERIOD_MS && !isAlike(session, reported),
  );
  return due.sort((one, other) => one.reportedMs - other.reportedMs).slice(0, MAX_MODIFIED_AT_ONCE);
}

/** Of a running session nothing but its counters changes. */
function isAlike(one: AdminSession, other: AdminSession): boolean {
  return one.downstreamBytes === other.downstreamBytes && one.upstreamBytes === other.upstreamBytes;
}

/** The process that has a session, or all of a replica. */
function holderOf({ replica = "", worker }: Partial<MissingSessions>): string {
  return worker === undefined ? replica : `${replica} ${worker}`;
}

export type ListedSessionRow = Known;

export function objectOf({ session, version }: Known): StreamingSession {
  return streamingSessionOf(session, version);
}

/** A session's place in lists. */
export interface SessionKey {
  readonly namespace: string;
  readonly id: string;
}

export function compareKeys(one: SessionKey, other: SessionKey): number {
  if (one.namespace !== other.namespace) return one.namespace < other.namespace ? -1 : 1;
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}
