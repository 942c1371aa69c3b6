import { randomInt } from "node:crypto";
import type { AdminSession, MissingSessions, SessionLists } from "../admin/admin-server.ts";
import type { ObjectSource, SourceChange } from "../api/read-only-server/object-source.ts";
import { type StreamingSession, streamingSessionOf } from "./streaming-session.ts";

/** How often sessions are listed while a client watches. Changes reach watches this late. */
export const WATCH_PERIOD_MS = 1_000;
/** At most this part of the time is spent on lists for watches: longer lists come less often. */
const WATCH_SHARE = 0.1;
/** Begins and ends that watches may still ask for. Past it: 410, and the client lists again. */
export const MAX_REMEMBERED_CHANGES = 20_000;

/** The sessions of all replicas, listed now. */
export type ListSessions = () => Promise<SessionLists>;

interface Change {
  readonly type: "ADDED" | "DELETED";
  readonly session: AdminSession;
  readonly resourceVersion: number;
}

interface Known {
  readonly session: AdminSession;
  /** The version of the list that first had it. */
  readonly version: number;
}

/**
 * All sessions of the gateway as this process last listed them, and how they changed. Versions begin
 * at random, so that another process's version is not mistaken for one of this process.
 */
export class SessionFeed implements ObjectSource {
  readonly #list: ListSessions;
  readonly #listeners = new Set<() => void>();
  #known = new Map<string, Known>();
  #changes: Change[] = [];
  #version = randomInt(2 ** 32, 2 ** 47);
  #firstVersion = this.#version;
  #partial: SessionLists["partial"] = [];
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(list: ListSessions) {
    this.#list = list;
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
      return { type, object, ...(type === "DELETED" && { previous: object }), resourceVersion };
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
    const before = this.#known;
    const after = new Map<string, Known>();
    for (const known of before.values()) {
      const { id, replica } = known.session;
      if (silent.has(holderOf(known.session)) || silent.has(replica ?? "")) after.set(id, known);
    }
    for (const session of sessions) {
      // Without a namespace it can be in no path (docs/sessions.md).
      if (session.namespace === "") continue;
      const version = before.get(session.id)?.version ?? this.#version + 1;
      const known = { session, version };
      if (!before.has(session.id)) this.#changed("ADDED", session);
      after.set(session.id, known);
    }
    for (const [id, known] of before) if (!after.has(id)) this.#changed("DELETED", known.session);
    this.#known = after;
    if (this.#changes.length > MAX_REMEMBERED_CHANGES) {
      this.#changes = this.#changes.slice(-MAX_REMEMBERED_CHANGES);
      this.#firstVersion = this.#version - this.#changes.length;
    }
    for (const listener of this.#listeners) listener();
  }

  #changed(type: Change["type"], session: AdminSession): void {
    this.#version += 1;
    this.#changes.push({ type, session, resourceVersion: this.#version });
  }
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
