import type { AdminSession, MissingSessions, SessionLists } from "../admin/admin-server.ts";
import type { ObjectSource } from "../api/read-only-server/object-source.ts";
import { compareKeys, PolledFeed } from "./polled-feed.ts";
import { type StreamingSession, streamingSessionOf } from "./streaming-session.ts";

/** A session that carries bytes is reported to watches as modified, but not again within this time. */
export const MODIFIED_PERIOD_MS = 10_000;
/** Sessions that one list reports as modified. Past it the next list does, those that wait longest first. */
export const MAX_MODIFIED_AT_ONCE = 500;

/** The sessions of all replicas, listed now. */
export type ListSessions = () => Promise<SessionLists>;

interface Known {
  readonly session: AdminSession;
  /** The version at which watches last heard of it, when, and how it was. */
  readonly version: number;
  readonly reportedMs: number;
  readonly reported: AdminSession;
}

/** All sessions of the gateway as this process last listed them, and how they changed. */
export class SessionFeed extends PolledFeed<AdminSession> implements ObjectSource {
  readonly #list: ListSessions;
  readonly #nowMs: () => number;
  #known = new Map<string, Known>();
  #partial: SessionLists["partial"] = [];

  constructor(list: ListSessions, nowMs: () => number = () => performance.now()) {
    super();
    this.#list = list;
    this.#nowMs = nowMs;
  }

  /** The processes that did not answer the last list. Their sessions are those of the list before. */
  get partial(): SessionLists["partial"] {
    return this.#partial;
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

  protected objectOf(session: AdminSession, version: number): StreamingSession {
    return streamingSessionOf(session, version);
  }

  protected async collect(): Promise<void> {
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
        known === undefined ? this.#reported("ADDED", session, nowMs) : { ...known, session },
      );
    }
    for (const { session } of dueAt(nowMs, after)) {
      after.set(session.id, this.#reported("MODIFIED", session, nowMs));
    }
    for (const [id, known] of before) if (!after.has(id)) this.changed("DELETED", known.session);
    this.#known = after;
  }

  #reported(type: "ADDED" | "MODIFIED", session: AdminSession, reportedMs: number): Known {
    return { session, version: this.changed(type, session), reported: session, reportedMs };
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
