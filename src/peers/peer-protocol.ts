import { SLUICE_VERSION } from "@sluice/client/internal/config/version";
import type { AdminSession, MissingSessions } from "../admin/admin-server.ts";
import { isDeeperThan, MAX_OBJECT_DEPTH } from "../api/is-deeper-than.ts";
import { LEFT, type OutputRead } from "../sessions/session-outputs.ts";

/** Supported protocol versions. During a rollout two releases must share one. */
const PEER_PROTOCOLS: readonly number[] = [1];

export const HELLO_PATH = "/peer/hello";
export const SESSIONS_PATH = "/peer/sessions";
/** Takes a POST of a question about recordings; answers with `answer`. Older releases have no such path. */
export const RECORDINGS_PATH = "/peer/recordings";
/** What a peer may ask about one session. */
type SessionAction =
  /** A POST of an EndRequest without its id. The answer is the EndResult. */
  | "end"
  /** A GET of the session's facts, which are absent if it does not run. */
  | "facts"
  /** A viewer's GET of the output that follows. */
  | "output"
  /** A POST of a JoinRequest without its id. The answer is the JoinAnswer. */
  | "input";

export function sessionPathOf(session: string, action: SessionAction): string {
  return `${SESSIONS_PATH}/${encodeURIComponent(session)}/${action}`;
}

export const VIEWER_HEADER = "Sluice-Viewer";

/** The session that such a path names. */
export function sessionIn(url: string, action: SessionAction): string | undefined {
  const [, session, found] = /^\/peer\/sessions\/([0-9a-f-]{36})\/(\w+)$/.exec(url) ?? [];
  return found === action ? session : undefined;
}

/**
 * Requests the page of sessions after this id; "" is the first page. Older releases send all
 * sessions.
 */
export const AFTER_HEADER = "Sluice-After";
/**
 * Sessions in one page of a replica's list: with long names, half of an answer's bytes. Past it the
 * next page begins.
 */
export const PEER_PAGE_SESSIONS = 1_000;

/** A replica's description of itself. Ignores fields that a later release adds. */
export interface PeerHello {
  /** From `newReplicaId`. */
  readonly replica: string;
  readonly protocols: readonly number[];
  /** The program's version, for operators. */
  readonly version: string;
}

export interface PeerSessions extends PeerHello {
  readonly sessions: readonly AdminSession[];
  /** The replica's workers whose sessions are missing, on every page; older releases name none. */
  readonly partial: readonly MissingSessions[];
  /** The id after which the next page begins; absent on the last page. */
  readonly next?: string | undefined;
}

export function helloOf(replica: string): PeerHello {
  return { replica, protocols: PEER_PROTOCOLS, version: SLUICE_VERSION };
}

/** Throws Error for an invalid hello, and for a peer without a common protocol. */
export function readHello(value: unknown): PeerHello {
  const { replica, protocols, version } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof replica !== "string" || !/^[0-9a-f]{8}$/.test(replica) || !Array.isArray(protocols)) {
    throw new Error("the answer is not that of a replica");
  }
  if (!protocols.some((protocol) => PEER_PROTOCOLS.includes(protocol as number))) {
    const theirs = protocols
      .slice(0, 8)
      .map((each) => (typeof each === "number" ? each : "?"))
      .join(", ");
    throw new Error(`it has protocols ${theirs}, this replica ${PEER_PROTOCOLS.join(", ")}`);
  }
  return { replica, protocols: protocols as number[], version: typeof version === "string" ? version : "" };
}

/**
 * Reads a list of sessions without its malformed entries. Throws the errors of `readHello`, and Error
 * if the body has no list.
 */
export function readPeerSessions(value: unknown): PeerSessions {
  const hello = readHello(value);
  const { sessions, next, partial } = value as Readonly<Record<string, unknown>>;
  if (!Array.isArray(sessions)) throw new Error("the answer has no list of sessions");
  return {
    ...hello,
    sessions: sessions.filter((each) => isSession(each) && !isDeeperThan(each, MAX_OBJECT_DEPTH)),
    partial: Array.isArray(partial) ? readMissing(partial) : [],
    next: typeof next === "string" ? next : undefined,
  };
}

const TEXTS = ["id", "subresource", "namespace", "pod", "node", "user"];
const OPTIONAL = {
  requestedBy: "string",
  container: "string",
  protocol: "string",
  tty: "boolean",
  stdin: "boolean",
};

function isSession(value: unknown): value is AdminSession {
  const session = fieldsOf(value);
  const { plan, client, startedAt, downstreamBytes, upstreamBytes, joiners = [] } = session;
  return (
    areTexts(session, TEXTS) &&
    areTexts(fieldsOf(plan), ["kind", "reason"]) &&
    (client === undefined || areTexts(fieldsOf(client), ["address", "agent"])) &&
    Object.entries(OPTIONAL).every(([name, type]) => ["undefined", type].includes(typeof session[name])) &&
    Array.isArray(joiners) &&
    joiners.every((user) => typeof user === "string") &&
    typeof startedAt === "string" &&
    !Number.isNaN(Date.parse(startedAt)) &&
    Number.isFinite(downstreamBytes) &&
    Number.isFinite(upstreamBytes)
  );
}

function areTexts(fields: Readonly<Record<string, unknown>>, names: readonly string[]): boolean {
  return names.every((name) => typeof fields[name] === "string");
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/** Worker indexes in a replica's list of missing workers. Past it an index is ignored. */
const MAX_PEER_WORKERS = 1_024;
/** Characters of a peer's text about a missing worker. Past it the text is cut. */
const MAX_PEER_PROBLEM = 256;

/** Keeps one entry for each worker. */
function readMissing(values: readonly unknown[]): MissingSessions[] {
  const found = new Map<number, MissingSessions>();
  for (const value of values) {
    const { worker, problem } = fieldsOf(value);
    if (typeof worker !== "number" || !Number.isInteger(worker) || worker < 0 || worker >= MAX_PEER_WORKERS)
      continue;
    found.set(worker, {
      worker,
      problem: typeof problem === "string" ? problem.slice(0, MAX_PEER_PROBLEM) : "",
    });
  }
  return [...found.values()];
}

/** Characters of a viewer's name. Past it a replica's request is refused. */
const MAX_VIEWER_NAME = 64;

/** Another process's request for output; undefined if it is malformed. */
export function readOutputRead(id: string, viewer: unknown, after: unknown): OutputRead | undefined {
  const isRead = typeof viewer === "string" && viewer.length > 0 && viewer.length <= MAX_VIEWER_NAME;
  const number = Number(after ?? -1);
  return isRead && Number.isSafeInteger(number) && number >= LEFT ? { id, viewer, after: number } : undefined;
}
