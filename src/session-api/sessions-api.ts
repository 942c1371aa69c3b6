// src/session-api: running sessions, and finished recordings, as objects of the API group sluice.dev

import { randomUUID } from "node:crypto";
import { NEVER_CACHED } from "@sluice/client/internal/api/status-body";
import { partialWarningOf, type SessionLists } from "../admin/admin-server.ts";
import { answerWatch, matcherOf, presenterOf } from "../api/read-only-server/answer-resource.ts";
import { type ApiAnswer, jsonAnswer } from "../api/read-only-server/api-answer.ts";
import { isTrue } from "../api/read-only-server/label-selector.ts";
import { negotiate } from "../api/read-only-server/negotiate.ts";
import { qualifiedNameOf } from "../api/read-only-server/resources.ts";
import type { FollowUser } from "../api/read-only-server/watch-stream.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { EndRequest, EndResult } from "../sessions/session-actions.ts";
import { replicaOfSession } from "../sessions/session-id.ts";
import type { JoinAnswer, Joinable, JoinRequest } from "../sessions/session-joins.ts";
import type { OutputAnswer, OutputPage, OutputRead } from "../sessions/session-outputs.ts";
import type { SessionFacts } from "../sessions/sessions.ts";
import { type DeleteOptions, readDeleteOptions } from "./delete-options.ts";
import { GROUP_DOCUMENTS } from "./discovery.ts";
import { OPEN_API_PATH } from "./open-api.ts";
import { MAX_UNANSWERED_MS, outputStream } from "./output-stream.ts";
import { RECORDINGS } from "./recording-object.ts";
import { RecordingsApi, type RecordingsPath, type RecordingsPlaces } from "./recordings-api.ts";
import { SessionFeed, SessionPager } from "./session-pager.ts";
import {
  SESSIONS_GROUP,
  SESSIONS_VERSION,
  STREAMING_SESSIONS,
  type StreamingSession,
} from "./streaming-session.ts";

/** The gateway's sessions, in any of its processes and replicas. */
export interface GatewaySessions {
  listEverywhere(): Promise<SessionLists>;
  end(request: EndRequest): Promise<EndResult>;
  facts(id: string): Promise<SessionFacts | undefined>;
  output(read: OutputRead): Promise<OutputAnswer>;
  type(request: JoinRequest): Promise<JoinAnswer>;
}

/** A request below /apis/sluice.dev of an authorized user. */
interface SessionsApiRequest {
  readonly method: string;
  /** Percent-encoded as received. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly userName: string;
  /** The reason that the user gave; may be empty. */
  readonly reason: string;
  /** The body of a DELETE; undefined without one. */
  readonly body: unknown;
  /** The Range header; empty if absent. */
  readonly range: string;
  readonly follow: FollowUser;
}

interface SessionsPath {
  readonly resource: typeof STREAMING_SESSIONS;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: "attach" | "output" | undefined;
}

const GROUP_PATH = `/apis/${SESSIONS_GROUP}`;
const VERSION_PATH = `${GROUP_PATH}/${SESSIONS_VERSION}`;
const RESOURCE = qualifiedNameOf(STREAMING_SESSIONS);

/** True for the paths that this API answers. */
export function isSessionsPath(path: string): boolean {
  return path === GROUP_PATH || path.startsWith(`${GROUP_PATH}/`) || path === OPEN_API_PATH;
}

/** Answers the API group of sessions: discovery, list, watch, get, and delete, which ends a session. */
export class SessionsApi {
  readonly #sessions: GatewaySessions;
  readonly #feed: SessionFeed;
  readonly #pager: SessionPager;
  readonly #recordings: RecordingsApi;

  constructor(sessions: GatewaySessions, recordings?: RecordingsPlaces) {
    this.#recordings = new RecordingsApi(recordings);
    this.#sessions = sessions;
    this.#feed = new SessionFeed(() => sessions.listEverywhere());
    this.#pager = new SessionPager(this.#feed);
  }

  /** Throws StatusError. */
  async answer(request: SessionsApiRequest): Promise<ApiAnswer> {
    const { method, path: rawPath, accept } = request;
    const path = rawPath.replace(/\/$/, "");
    const document = GROUP_DOCUMENTS.get(path);
    if (document !== undefined) {
      if (method !== "GET") throw WIRE_ERRORS["method-not-allowed"].streaming({ method });
      negotiate(accept);
      return jsonAnswer(document);
    }
    const recordings = recordingsPathOf(path);
    if (recordings !== undefined) return await this.#recordings.answer(recordings, request);
    const wanted = sessionsPathOf(path);
    if (wanted.subresource === "output" && method === "GET") return await this.#output(wanted, request);
    if (wanted.subresource === "attach" && (method === "GET" || method === "POST"))
      throw WIRE_ERRORS["no-upgrade"].streaming();
    if (wanted.subresource !== undefined) throw WIRE_ERRORS["method-not-allowed"].streaming({ method });
    if (method === "GET") return await this.#read(wanted, request);
    if (method === "DELETE" && wanted.name !== undefined) return await this.#end(wanted, request);
    throw WIRE_ERRORS["verb-not-allowed"].streaming({ method, resource: RESOURCE, name: wanted.name ?? "" });
  }

  stop(): void {
    this.#pager.stop();
    this.#feed.stop();
    this.#recordings.stop();
  }

  async #read(path: SessionsPath, { query, accept, follow }: SessionsApiRequest): Promise<ApiAnswer> {
    const present = presenterOf(path.resource, { query, accept, now: () => new Date() });
    if (path.name !== undefined) return jsonAnswer(present.one(await this.#describe(path)));
    const isWatched = matcherOf(path, query);
    if (isTrue(query.get("watch"))) {
      await this.#feed.refresh();
      return answerWatch({
        resource: path.resource,
        source: this.#feed,
        query,
        isWatched,
        present: present.one,
        listMatching: () => this.#feed.list("", path.namespace).filter(isWatched),
        follow,
      });
    }
    const selects = query.get("labelSelector") || query.get("fieldSelector");
    const { objects, metadata } = await this.#pager.page(
      query,
      path.namespace,
      selects ? isWatched : undefined,
    );
    return this.#warning(jsonAnswer(present.list(objects, metadata)));
  }

  /** Adds the user's groups and the command line, which may contain secrets: lists have neither. */
  async #describe(path: SessionsPath): Promise<StreamingSession> {
    const session = await this.#require(path);
    const facts = await this.#sessions.facts(session.metadata.name);
    if (facts === undefined) return session;
    const { spec } = session;
    const { command, groups } = facts;
    const user = { ...spec.user, groups };
    return { ...session, spec: { ...spec, user, ...(command.length > 0 && { command }) } };
  }

  /** Streams the session's output to a viewer, as asciicast v3. */
  async #output(path: SessionsPath, { follow }: SessionsApiRequest): Promise<ApiAnswer> {
    const session = await this.#require(path);
    const { name } = session.metadata;
    const viewer = randomUUID();
    const read = (after: number): Promise<OutputAnswer> => this.#sessions.output({ id: name, viewer, after });
    const first = await this.#firstPage(name, viewer);
    const headers = { ...NEVER_CACHED, "Content-Type": "application/x-asciicast" };
    return { status: 200, headers, body: outputStream(session, first, { read, follow }) };
  }

  /** The session of an attach path, with the command line to judge it by. Throws StatusError. */
  async sessionAt(path: string): Promise<StreamingSession> {
    const session = await this.#describe(sessionsPathOf(path.replace(/\/$/, "")));
    const { name } = session.metadata;
    if (session.spec.user.groups === undefined) throw WIRE_ERRORS["session-unreachable"].streaming({ name });
    return session;
  }

  /** Joins as this user. Throws StatusError: no stdin or no more, too many viewers, no answer. */
  async joinable({ metadata, spec }: StreamingSession, joiner: string, user: string): Promise<Joinable> {
    const { name } = metadata;
    if (!spec.stdin) throw WIRE_ERRORS["session-without-input"].streaming({ name });
    const first = await this.#firstPage(name, joiner);
    const type: Joinable["type"] = (bytes, isLeaving) => {
      const data = Buffer.from(bytes).toString("base64");
      return this.#sessions.type({ id: name, joiner, user, data, ...(isLeaving && { isLeaving }) });
    };
    const answer = await type(Buffer.of());
    if (answer === "no-input") throw WIRE_ERRORS["session-input-ended"].streaming({ name });
    if (answer === "unreachable") throw WIRE_ERRORS["session-unreachable"].streaming({ name });
    if (answer === "unknown" || typeof answer === "object") throw unknown(name);
    const read = (after: number): Promise<OutputAnswer> =>
      this.#sessions.output({ id: name, viewer: joiner, after });
    return { name, hasTerminal: spec.tty === true, unansweredMs: MAX_UNANSWERED_MS, first, read, type };
  }

  /** Throws StatusError. */
  async #firstPage(name: string, viewer: string): Promise<OutputPage> {
    const startMs = performance.now();
    const read = () => this.#sessions.output({ id: name, viewer, after: -1 });
    let first = await read();
    // The session's screen is not drawn yet.
    while (typeof first !== "string" && first.next < 0)
      first = performance.now() - startMs > MAX_UNANSWERED_MS ? "unreachable" : await read();
    if (typeof first !== "string") return first;
    if (first === "unreachable") throw WIRE_ERRORS["session-unreachable"].streaming({ name });
    if (first === "too-many") throw WIRE_ERRORS["too-many-viewers"].streaming({ name });
    if (first === "no-output") throw WIRE_ERRORS["session-undecoded"].streaming({ name });
    throw unknown(name);
  }

  async #require({ namespace = "", name = "" }: SessionsPath) {
    await this.#feed.refresh();
    const session = this.#feed.get("", namespace, name);
    if (session !== undefined) return session;
    if (this.#feed.partial.length > 0 && replicaOfSession(name) !== undefined)
      throw WIRE_ERRORS["session-unreachable"].streaming({ name });
    throw unknown(name);
  }

  async #end(path: SessionsPath, request: SessionsApiRequest): Promise<ApiAnswer> {
    negotiate(request.accept);
    const { userName, query } = request;
    const options = readDeleteOptions(request.body, query);
    const { metadata, spec } = await this.#require(path);
    const { name } = metadata;
    requireSame(options, name);
    const details = { name, group: SESSIONS_GROUP, kind: STREAMING_SESSIONS.name, uid: name };
    const done = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
    if (options.isDryRun) return jsonAnswer(done);
    const reason = request.reason === "" ? "" : `: ${request.reason}`;
    const message = `the session was ended by ${userName}${reason}`;
    const result = await this.#sessions.end({
      id: name,
      message,
      status: {
        metadata: {},
        status: "Failure",
        reason: "Forbidden",
        code: 403,
        message,
        details: {
          name: spec.pod,
          kind: "pods",
          causes: [{ reason: "sluice.dev/SessionEnded", message: "moderator" }],
        },
      },
    });
    if (result === "unknown") throw unknown(name);
    if (result === "unreachable") throw WIRE_ERRORS["session-unreachable"].streaming({ name });
    return { ...jsonAnswer(done), status: result === "ending" ? 202 : 200 };
  }

  /** Names the processes whose sessions may be missing, in a header that kubectl prints. */
  #warning(answer: ApiAnswer): ApiAnswer {
    const warning = partialWarningOf(this.#feed.partial);
    return warning === undefined ? answer : { ...answer, headers: { ...answer.headers, Warning: warning } };
  }
}

/** Throws StatusError if the delete's preconditions do not match the session. */
function requireSame({ uid, resourceVersion }: DeleteOptions, name: string): void {
  if (resourceVersion !== undefined) {
    const problem = "a session has no version that a delete could require: use preconditions.uid";
    throw WIRE_ERRORS["delete-options"].streaming({ problem });
  }
  if (uid !== undefined && uid !== name)
    throw WIRE_ERRORS["uid-conflict"].streaming({ resource: RESOURCE, name, uid });
}

const unknown = (name: string): Error =>
  WIRE_ERRORS["object-unknown"].streaming({ resource: RESOURCE, name });

/** Throws StatusError 404 for every path except those of collections and objects. */
function sessionsPathOf(path: string): SessionsPath {
  if (!path.startsWith(`${VERSION_PATH}/`)) throw WIRE_ERRORS["path-unknown"].streaming();
  const [first, second, third, name, subresource, ...more] = segmentsOf(path.slice(VERSION_PATH.length + 1));
  const resource = STREAMING_SESSIONS;
  if (first === resource.name && second === undefined)
    return { resource, namespace: undefined, name: undefined, subresource: undefined };
  if (first !== "namespaces" || third !== resource.name || more.length > 0)
    throw WIRE_ERRORS["path-unknown"].streaming();
  if (subresource !== undefined && subresource !== "attach" && subresource !== "output")
    throw WIRE_ERRORS["path-unknown"].streaming();
  return { resource, namespace: second, name, subresource };
}

/** Undefined if the path is not one of recordings. */
function recordingsPathOf(path: string): RecordingsPath | undefined {
  if (!path.startsWith(`${VERSION_PATH}/`)) return undefined;
  const resource = RECORDINGS;
  const [first, second, third, name, subresource, ...more] = segmentsOf(path.slice(VERSION_PATH.length + 1));
  if (first === resource.name && second === undefined)
    return { resource, namespace: undefined, name: undefined, subresource: undefined };
  if (first !== "namespaces" || third !== resource.name || more.length > 0) return undefined;
  if (subresource !== undefined && subresource !== "content") return undefined;
  return { resource, namespace: second, name, subresource };
}

function segmentsOf(path: string): readonly string[] {
  try {
    const segments = path.split("/").map(decodeURIComponent);
    if (!segments.includes("")) return segments;
  } catch {
    // A path that cannot be decoded names no object.
  }
  throw WIRE_ERRORS["path-unknown"].streaming();
}
