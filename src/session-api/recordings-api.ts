import { partialWarningOf } from "../admin/admin-server.ts";
import { isTrue, presenterOf, type ResourcePath } from "../api/read-only-server/answer-resource.ts";
import { type ApiAnswer, jsonAnswer } from "../api/read-only-server/api-answer.ts";
import { parseCount } from "../api/read-only-server/list-page.ts";
import { negotiate } from "../api/read-only-server/negotiate.ts";
import { qualifiedNameOf } from "../api/read-only-server/resources.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { readDeleteOptions } from "./delete-options.ts";
import { FolderRecordings, keyOf } from "./folder-recordings.ts";
import { mergePages } from "./merge-recordings.ts";
import { PeerRecordings } from "./peer-recordings.ts";
import { RECORDINGS, type RecordingObject } from "./recording-object.ts";
import type { ObjectKey } from "./polled-feed.ts";
import { SESSIONS_GROUP } from "./streaming-session.ts";

const RESOURCE = qualifiedNameOf(RECORDINGS);
const CONTENT_TYPE = "application/x-asciicast";

export interface RecordingsPath extends ResourcePath {
  readonly subresource: string | undefined;
}

export interface RecordingsPlaces {
  readonly own: FolderRecordings;
  readonly peers: PeerRecordings;
}

/** Nothing is recorded, and there are no other replicas. */
export const NO_RECORDINGS: RecordingsPlaces = {
  own: new FolderRecordings(undefined),
  peers: new PeerRecordings(() => undefined),
};

/** `replica`: the other one that has it. */
interface Found {
  readonly recording: RecordingObject;
  readonly replica?: string | undefined;
}

interface RecordingsRequest {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly userName: string;
  readonly body: unknown;
  /** The Range header; empty if absent. */
  readonly range: string;
}

/** Answers requests for finished recordings in the folders of all replicas: list, get, their content, delete. */
export class RecordingsApi {
  readonly #own: FolderRecordings;
  readonly #peers: PeerRecordings;

  constructor({ own, peers }: RecordingsPlaces = NO_RECORDINGS) {
    this.#own = own;
    this.#peers = peers;
  }

  /** Throws StatusError. */
  async answer(path: RecordingsPath, request: RecordingsRequest): Promise<ApiAnswer> {
    const { method } = request;
    const { name, subresource } = path;
    if (subresource === "content" && method === "GET") return await this.#content(path, request);
    if (subresource === undefined && method === "GET") return await this.#read(path, request);
    if (subresource === undefined && method === "DELETE" && name !== undefined)
      return await this.#delete(path, request);
    throw WIRE_ERRORS["verb-not-allowed"].streaming({ method, resource: RESOURCE, name: name ?? "" });
  }

  async #read(path: RecordingsPath, { query, accept }: RecordingsRequest): Promise<ApiAnswer> {
    const present = presenterOf(RECORDINGS, { query, accept, now: () => new Date() });
    if (isTrue(query.get("watch")))
      throw WIRE_ERRORS["verb-not-allowed"].streaming({ method: "WATCH", resource: RESOURCE, name: "" });
    if (path.name !== undefined) return jsonAnswer(present.one((await this.#require(path)).recording));
    const limit = parseCount("limit", query.get("limit") || "0");
    const wanted = {
      namespace: path.namespace,
      labels: query.get("labelSelector") ?? "",
      fields: query.get("fieldSelector") ?? "",
      after: readToken(query.get("continue") || ""),
      limit,
    };
    // Ours first: no other replica is asked for what cannot be selected.
    const own = await this.#own.page(wanted);
    const { pages, partial } = await this.#peers.pages(wanted);
    const { items, remaining, isExact, version } = mergePages([own, ...pages], limit);
    const last = items.at(-1);
    const metadata = {
      resourceVersion: String(version),
      ...(remaining > 0 && last !== undefined && { continue: tokenOf(keyOf(last)) }),
      ...(remaining > 0 && isExact && { remainingItemCount: remaining }),
    };
    const answer = jsonAnswer(present.list(items, metadata));
    const warning = partialWarningOf(partial);
    return warning === undefined ? answer : { ...answer, headers: { ...answer.headers, Warning: warning } };
  }

  async #content(path: RecordingsPath, { range }: RecordingsRequest): Promise<ApiAnswer> {
    const found = await this.#require(path);
    const bytes = found.recording.status.fileBytes;
    const headers = { "Content-Type": CONTENT_TYPE, "Accept-Ranges": "bytes", "Cache-Control": "no-store" };
    const part = partOf(range, bytes);
    if (part === undefined)
      return {
        status: 200,
        headers: { ...headers, "Content-Length": String(bytes) },
        body: await this.#bytes(found, 0, bytes - 1),
      };
    const [start, end] = part;
    if (start > end)
      return {
        status: 416,
        headers: { ...headers, "Content-Range": `bytes */${bytes}` },
        body: new Uint8Array(),
      };
    return {
      status: 206,
      headers: {
        ...headers,
        "Content-Length": String(end - start + 1),
        "Content-Range": `bytes ${start}-${end}/${bytes}`,
      },
      body: await this.#bytes(found, start, end),
    };
  }

  async #delete(
    path: RecordingsPath,
    { accept, body, query, userName }: RecordingsRequest,
  ): Promise<ApiAnswer> {
    negotiate(accept);
    const { isDryRun, uid } = readDeleteOptions(body, query);
    const { recording, replica } = await this.#require(path);
    const name = path.name ?? "";
    if (uid !== undefined && uid !== name)
      throw WIRE_ERRORS["uid-conflict"].streaming({ resource: RESOURCE, name, uid });
    const details = { name, group: SESSIONS_GROUP, kind: RECORDINGS.name, uid: name };
    const done = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
    if (isDryRun) return jsonAnswer(done);
    const reason = `the API, by ${userName}`;
    const key = keyOf(recording);
    const isDeleted =
      replica === undefined
        ? await this.#own.delete(key, reason)
        : await this.#peers.delete(replica, key, reason).catch(() => {
            throw WIRE_ERRORS["recording-unreachable"].streaming({ name });
          });
    if (!isDeleted) throw WIRE_ERRORS["object-unknown"].streaming({ resource: RESOURCE, name });
    return jsonAnswer(done);
  }

  async #bytes(
    { recording, replica }: Found,
    start: number,
    end: number,
  ): Promise<AsyncGenerator<Uint8Array>> {
    const key = keyOf(recording);
    if (replica !== undefined) return this.#peers.content(replica, key, start, end);
    const content = await this.#own.content(key, start, end);
    if (content !== undefined) return content;
    throw WIRE_ERRORS["object-unknown"].streaming({ resource: RESOURCE, name: key.id });
  }

  async #require({ namespace = "", name = "" }: RecordingsPath): Promise<Found> {
    const key = { namespace, id: name };
    const recording = await this.#own.find(key);
    if (recording !== undefined) return { recording };
    const { found, partial } = await this.#peers.find(key);
    if (found !== undefined) return found;
    if (partial.length > 0) throw WIRE_ERRORS["recording-unreachable"].streaming({ name });
    throw WIRE_ERRORS["object-unknown"].streaming({ resource: RESOURCE, name });
  }
}

function tokenOf(key: ObjectKey): string {
  return Buffer.from(JSON.stringify({ v: "sluice.dev/recordings", ...key })).toString("base64url");
}

/** Undefined without one. Throws StatusError 400. */
function readToken(token: string): ObjectKey | undefined {
  if (token === "") return undefined;
  try {
    const { v, namespace, id } = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (v === "sluice.dev/recordings" && typeof namespace === "string" && typeof id === "string")
      return { namespace, id };
  } catch {
    // Said below.
  }
  throw WIRE_ERRORS["continue-invalid"].streaming();
}

/** The first and last byte of a range; undefined for the whole, also for ranges that are not read. */
function partOf(range: string, bytes: number): readonly [start: number, end: number] | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range) ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") return [Math.max(0, bytes - Number(last)), last === "0" ? -1 : bytes - 1];
  return [Number(first), Math.min(bytes - 1, last === "" ? bytes - 1 : Number(last))];
}
