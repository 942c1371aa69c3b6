import type { AdminSession, MissingSessions, SessionLists } from "../admin/admin-server.ts";
import type { ApiObject } from "../api/api-object.ts";
import type { ObjectSource } from "../api/read-only-server/api-answer.ts";
import { parseCount } from "../api/read-only-server/list-page.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { compareKeys, type ObjectKey, PolledFeed } from "./polled-feed.ts";
import { type StreamingSession, streamingSessionOf } from "./streaming-session.ts";

/**
 * Lists that wait for the request for their next page. Past it the oldest continues as a new list.
 */
const MAX_KEPT_SESSION_LISTS = 8;
/**
 * How long a list waits for the request for its next page. Past it that page comes from a new list.
 */
const KEPT_SESSION_LIST_MS = 30_000;
/** How long after a list began its next page may be requested. Past it: 410. */
const MAX_CONTINUE_AGE_MS = 5 * 60_000;

interface Page {
  readonly objects: readonly ApiObject[];
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** The contents of a `continue` parameter. */
interface Continue {
  /** The previous page's last session. */
  readonly after: ObjectKey;
  readonly version: number;
  /** When the list began, in milliseconds since 1970. */
  readonly beganMs: number;
}

interface KeptList {
  readonly rows: readonly ListedSessionRow[];
  readonly timer: NodeJS.Timeout;
}

/**
 * Lists sessions page by page. Pages from one process show one moment. In another process, or
 * later, the list continues after its last session with the sessions that run then.
 */
export class SessionPager {
  readonly #feed: SessionFeed;
  readonly #nowMs: () => number;
  /** By the next page's continue parameter and the list's selectors. */
  readonly #kept = new Map<string, KeptList>();

  constructor(feed: SessionFeed, nowMs: () => number = Date.now) {
    this.#feed = feed;
    this.#nowMs = nowMs;
  }

  /** How many lists wait for their next page. */
  get kept(): number {
    return this.#kept.size;
  }

  /** Throws StatusError 400 for invalid values, 410 for an expired `continue`. */
  async page(
    query: URLSearchParams,
    namespace: string | undefined,
    matches: ((object: ApiObject) => boolean) | undefined,
  ): Promise<Page> {
    const limit = parseCount("limit", query.get("limit") || "0");
    const token = query.get("continue") || "";
    const began = token === "" ? undefined : this.#read(token);
    const selected = [namespace, query.get("labelSelector"), query.get("fieldSelector")].join("\n");
    const kept = this.#take(`${token}\n${selected}`);
    if (kept === undefined) await this.#feed.refresh();
    const version = kept === undefined ? this.#feed.resourceVersion : (began?.version ?? 0);
    const rows =
      kept ??
      this.#behind(began?.after, namespace).filter((row) => matches === undefined || matches(objectOf(row)));
    const shown = limit === 0 ? rows : rows.slice(0, limit);
    const last = shown.at(-1);
    const remaining = rows.length - shown.length;
    const next =
      remaining === 0 || last === undefined
        ? undefined
        : tokenOf({ after: last.session, version, beganMs: began?.beganMs ?? this.#nowMs() });
    if (next !== undefined) this.#keep(`${next}\n${selected}`, rows.slice(shown.length));
    return {
      objects: shown.map(objectOf),
      metadata: {
        resourceVersion: String(version),
        ...(next !== undefined && { continue: next, remainingItemCount: remaining }),
      },
    };
  }

  stop(): void {
    for (const key of [...this.#kept.keys()]) this.#take(key);
  }

  #behind(after: ObjectKey | undefined, namespace: string | undefined): readonly ListedSessionRow[] {
    const rows = this.#feed.sorted(namespace);
    return after === undefined ? rows : rows.filter(({ session }) => compareKeys(session, after) > 0);
  }

  #take(key: string): readonly ListedSessionRow[] | undefined {
    const list = this.#kept.get(key);
    clearTimeout(list?.timer);
    this.#kept.delete(key);
    return list?.rows;
  }

  #keep(key: string, rows: readonly ListedSessionRow[]): void {
    this.#take(key);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size >= MAX_KEPT_SESSION_LISTS && oldest !== undefined) this.#take(oldest);
    const timer = setTimeout(() => this.#take(key), KEPT_SESSION_LIST_MS).unref();
    this.#kept.set(key, { rows, timer });
  }

  #read(token: string): Continue {
    const read = continueOf(token);
    if (read === undefined) throw WIRE_ERRORS["continue-invalid"].streaming();
    if (Math.abs(this.#nowMs() - read.beganMs) <= MAX_CONTINUE_AGE_MS) return read;
    throw WIRE_ERRORS["continue-expired"].streaming();
  }
}

function tokenOf({ after: { namespace, id }, version, beganMs }: Continue): string {
  const fields = { v: "sluice.dev/sessions", rv: version, at: beganMs, ns: namespace, id };
  return Buffer.from(JSON.stringify(fields)).toString("base64url");
}

function continueOf(token: string): Continue | undefined {
  try {
    const fields = JSON.parse(Buffer.from(token, "base64url").toString()) as Record<string, unknown>;
    const { v, rv, at, ns, id } = fields;
    const isValid = v === "sluice.dev/sessions" && Number.isSafeInteger(rv) && Number.isSafeInteger(at);
    if (!isValid || typeof ns !== "string" || typeof id !== "string") return undefined;
    return { after: { namespace: ns, id }, version: rv as number, beganMs: at as number };
  } catch {
    return undefined;
  }
}

/** The shortest time between two reports to watches that a session's byte counts changed. */
const MODIFIED_PERIOD_MS = 10_000;
/**
 * Sessions that one list reports as modified. Past it the next list reports the rest, longest
 * waiting first.
 */
const MAX_MODIFIED_AT_ONCE = 500;

/** The sessions of all replicas, listed now. */
type ListSessions = () => Promise<SessionLists>;

interface Known {
  readonly session: AdminSession;
  /** The last report to watches: its version, its time, and the session as reported. */
  readonly version: number;
  readonly reportedMs: number;
  readonly reported: AdminSession;
}

/** All sessions of the gateway as this process last listed them, and their changes. */
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

  /** The processes that did not answer the last list. Their sessions stay as in the list before. */
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

  /** Ordered by namespace and name, like API servers' lists. */
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
      // A session without a namespace has no path (docs/sessions.md).
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

/** The changed sessions that may be reported now, longest waiting first. */
function dueAt(nowMs: number, all: ReadonlyMap<string, Known>): readonly Known[] {
  const due = [...all.values()].filter(
    ({ session, reported, reportedMs }) =>
      nowMs - reportedMs >= MODIFIED_PERIOD_MS && !isAlike(session, reported),
  );
  return due.sort((one, other) => one.reportedMs - other.reportedMs).slice(0, MAX_MODIFIED_AT_ONCE);
}

/** Only the byte counts of a running session change. */
function isAlike(one: AdminSession, other: AdminSession): boolean {
  return one.downstreamBytes === other.downstreamBytes && one.upstreamBytes === other.upstreamBytes;
}

/** Identifies a session's process, or a whole replica. */
function holderOf({ replica = "", worker }: Partial<MissingSessions>): string {
  return worker === undefined ? replica : `${replica} ${worker}`;
}

type ListedSessionRow = Known;

function objectOf({ session, version }: Known): StreamingSession {
  return streamingSessionOf(session, version);
}
