import { createReadStream } from "node:fs";
import {
  isTrue,
  matcherOf,
  presenterOf,
  type ResourcePath,
} from "../api/read-only-server/answer-resource.ts";
import { type ApiAnswer, jsonAnswer } from "../api/read-only-server/api-answer.ts";
import { parseCount } from "../api/read-only-server/list-page.ts";
import { negotiate } from "../api/read-only-server/negotiate.ts";
import { qualifiedNameOf } from "../api/read-only-server/resources.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { RecordingIndex, StoredRecording } from "../recording/reading/recording-index.ts";
import { readDeleteOptions } from "./delete-options.ts";
import { RECORDINGS, recordingObjectOf } from "./recording-object.ts";
import { compareKeys } from "./session-feed.ts";
import { SESSIONS_GROUP } from "./streaming-session.ts";

const RESOURCE = qualifiedNameOf(RECORDINGS);
const CONTENT_TYPE = "application/x-asciicast";
const ONE_FOLDER = '299 - "the list has the recordings of one replica; others may have folders of their own"';

export interface RecordingsPath extends ResourcePath {
  readonly subresource: string | undefined;
}

export interface RecordingsPlace {
  /** Absent: nothing is recorded. */
  readonly folder: string | undefined;
  /** Other replicas may record into folders of their own. */
  readonly hasReplicas: boolean;
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

/**
 * Answers requests for finished recordings in this gateway's folder: list, get, their content, delete.
 * Without a folder there are none.
 */
export class RecordingsApi {
  readonly #folder: string | undefined;
  readonly #hasReplicas: boolean;
  #index: RecordingIndex | undefined;

  constructor({ folder, hasReplicas }: RecordingsPlace) {
    this.#folder = folder;
    this.#hasReplicas = hasReplicas;
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
    if (path.name !== undefined)
      return jsonAnswer(present.one(recordingObjectOf(await this.#require(path), true)));
    const matches = matcherOf(path, query);
    const found = (await this.#list())
      .filter(({ facts }) => path.namespace === undefined || facts.namespace === path.namespace)
      .filter((stored) => matches(recordingObjectOf(stored, false)))
      .sort((one, other) => compareKeys(keyOf(one), keyOf(other)));
    const after = readToken(query.get("continue") || "");
    const rest = after === undefined ? found : found.filter((each) => compareKeys(keyOf(each), after) > 0);
    const limit = parseCount("limit", query.get("limit") || "0");
    const shown = limit === 0 ? rest : rest.slice(0, limit);
    const last = shown.at(-1);
    const isCut = shown.length < rest.length && last !== undefined;
    const metadata = {
      resourceVersion: String(Math.floor(Math.max(0, ...found.map(({ endedMs }) => endedMs)))),
      ...(isCut && { continue: tokenOf(last), remainingItemCount: rest.length - shown.length }),
    };
    const objects = shown.map((stored) => recordingObjectOf(stored, false));
    const answer = jsonAnswer(present.list(objects, metadata));
    return (await this.#isPartial())
      ? { ...answer, headers: { ...answer.headers, Warning: ONE_FOLDER } }
      : answer;
  }

  async #content(path: RecordingsPath, { range }: RecordingsRequest): Promise<ApiAnswer> {
    const { file, bytes } = await this.#require(path);
    const headers = { "Content-Type": CONTENT_TYPE, "Accept-Ranges": "bytes", "Cache-Control": "no-store" };
    const part = partOf(range, bytes);
    if (part === undefined)
      return {
        status: 200,
        headers: { ...headers, "Content-Length": String(bytes) },
        body: contentOf(file, 0, bytes - 1),
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
      body: contentOf(file, start, end),
    };
  }

  async #delete(
    path: RecordingsPath,
    { accept, body, query, userName }: RecordingsRequest,
  ): Promise<ApiAnswer> {
    negotiate(accept);
    const { isDryRun, uid } = readDeleteOptions(body, query);
    const { file } = await this.#require(path);
    const name = path.name ?? "";
    if (uid !== undefined && uid !== name)
      throw WIRE_ERRORS["uid-conflict"].streaming({ resource: RESOURCE, name, uid });
    const details = { name, group: SESSIONS_GROUP, kind: RECORDINGS.name, uid: name };
    const done = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
    if (isDryRun) return jsonAnswer(done);
    const { deleteRecording } = await import("../recording/storage/delete-recording.ts");
    await deleteRecording(this.#folder ?? "", file, `the API, by ${userName}`);
    return jsonAnswer(done);
  }

  async #list(): Promise<readonly StoredRecording[]> {
    return (await this.#opened())?.list() ?? [];
  }

  async #require({ namespace = "", name = "" }: RecordingsPath): Promise<StoredRecording> {
    const named = (await (await this.#opened())?.find(name)) ?? [];
    const found = named.find(({ facts }) => facts.namespace === namespace);
    if (found === undefined) throw WIRE_ERRORS["object-unknown"].streaming({ resource: RESOURCE, name });
    return found;
  }

  /** Whether other replicas have folders of their own, as far as this folder tells. */
  async #isPartial(): Promise<boolean> {
    if (!this.#hasReplicas) return false;
    const { isSharedFolder } = await import("../recording/thread/writer-lease.ts");
    return this.#folder === undefined || !isSharedFolder(this.#folder);
  }

  async #opened(): Promise<RecordingIndex | undefined> {
    if (this.#folder === undefined) return undefined;
    const { RecordingIndex } = await import("../recording/reading/recording-index.ts");
    this.#index ??= new RecordingIndex(this.#folder);
    return this.#index;
  }
}

/** Opens the file only for a client that reads: one that has left would leave it open. */
async function* contentOf(file: string, start: number, end: number): AsyncGenerator<Uint8Array, void> {
  yield* createReadStream(file, { start, end });
}

interface Key {
  readonly namespace: string;
  readonly id: string;
}

function keyOf({ facts: { namespace, session } }: StoredRecording): Key {
  return { namespace, id: session };
}

function tokenOf(stored: StoredRecording): string {
  return Buffer.from(JSON.stringify({ v: "sluice.dev/recordings", ...keyOf(stored) })).toString("base64url");
}

/** Undefined without one. Throws StatusError 400. */
function readToken(token: string): Key | undefined {
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
