import { partialWarningOf } from "../admin/admin-server.ts";
import type { ApiObject } from "../api/api-object.ts";
import {
  answerWatch,
  matcherOf,
  presenterOf,
  type ResourcePath,
} from "../api/read-only-server/answer-resource.ts";
import { type ApiAnswer, jsonAnswer } from "../api/read-only-server/api-answer.ts";
import { isTrue } from "../api/read-only-server/label-selector.ts";
import { parseCount } from "../api/read-only-server/list-page.ts";
import { negotiate } from "../api/read-only-server/negotiate.ts";
import { qualifiedNameOf } from "../api/read-only-server/resources.ts";
import type { FollowUser } from "../api/read-only-server/watch-stream.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { readDeleteOptions } from "./delete-options.ts";
import { FolderRecordings, keyOf, type RecordingsQuery } from "./folder-recordings.ts";
import { firstPageOf, mergePages } from "./merge-recordings.ts";
import { type PeerPages, PeerRecordings } from "./peer-recordings.ts";
import type { ObjectKey } from "./polled-feed.ts";
import {
  type EveryRecording,
  type HeldRecordings,
  MAX_WATCHED_RECORDINGS,
  RecordingFeed,
} from "./recording-feed.ts";
import { RECORDINGS, type RecordingObject } from "./recording-object.ts";
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
  readonly follow: FollowUser;
}

/** Answers requests for finished recordings in the folders of all replicas: list, watch, get, their content, delete. */
export class RecordingsApi {
  readonly #own: FolderRecordings;
  readonly #peers: PeerRecordings;
  readonly #feed = new RecordingFeed((before) => this.#everything(before));

  constructor({ own, peers }: RecordingsPlaces = NO_RECORDINGS) {
    this.#own = own;
    this.#peers = peers;
  }

  stop(): void {
    this.#feed.stop();
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

  async #read(path: RecordingsPath, request: RecordingsRequest): Promise<ApiAnswer> {
    const { query, accept } = request;
    const present = presenterOf(RECORDINGS, { query, accept, now: () => new Date() });
    if (path.name !== undefined) return jsonAnswer(present.one((await this.#require(path)).recording));
    if (isTrue(query.get("watch"))) return await this.#watch(path, request, present.one);
    const limit = parseCount("limit", query.get("limit") || "0");
    const token = readToken(query.get("continue") || "");
    const wanted = {
      namespace: path.namespace,
      labels: query.get("labelSelector") ?? "",
      fields: query.get("fieldSelector") ?? "",
      after: token?.after,
      limit,
    };
    const isWatched = matcherOf({ ...path, resource: RECORDINGS }, query);
    if (token === undefined) await this.#feed.refresh();
    const version = token?.version ?? this.#feed.resourceVersion;
    const { held } = this.#feed;
    const { pages, partial } =
      token === undefined && held !== undefined
        ? {
            pages: held.map(({ items }) => firstPageOf(items, isWatched, limit)),
            partial: this.#feed.partial,
          }
        : await this.#pages(wanted);
    const { items, remaining, isExact } = mergePages(pages, limit);
    const last = items.at(-1);
    const metadata = {
      resourceVersion: String(version),
      ...(remaining > 0 && last !== undefined && { continue: tokenOf({ after: keyOf(last), version }) }),
      ...(remaining > 0 && isExact && { remainingItemCount: remaining }),
    };
    const answer = jsonAnswer(present.list(items, metadata));
    const warning = partialWarningOf(partial);
    return warning === undefined ? answer : { ...answer, headers: { ...answer.headers, Warning: warning } };
  }

  async #pages(wanted: RecordingsQuery): Promise<PeerPages> {
    const [own, peers] = await Promise.all([this.#own.page(wanted), this.#peers.pages(wanted)]);
    return { ...peers, pages: [own, ...peers.pages] };
  }

  /** Recordings do not change: they come and go. */
  async #watch(
    path: RecordingsPath,
    { query, follow }: RecordingsRequest,
    present: (object: ApiObject) => unknown,
  ): Promise<ApiAnswer> {
    const isWatched = matcherOf({ ...path, resource: RECORDINGS }, query);
    await this.#feed.refresh();
    const all = this.#feed.sorted();
    if (all === undefined)
      throw WIRE_ERRORS["recordings-too-many"].streaming({ most: MAX_WATCHED_RECORDINGS });
    const listMatching = () => all.filter(isWatched);
    const source = this.#feed;
    return answerWatch({ resource: RECORDINGS, source, query, isWatched, present, listMatching, follow });
  }

  async #everything(before: readonly HeldRecordings[]): Promise<EveryRecording> {
    const query = { labels: "", fields: "", limit: MAX_WATCHED_RECORDINGS + 1 };
    const [{ items }, peers] = await Promise.all([this.#own.page(query), this.#peers.everything(before)]);
    const held = [{ holder: "", state: undefined, items }, ...peers.held];
    const count = held.reduce((sum, each) => sum + each.items.length, 0);
    return { ...peers, held, isTooMany: peers.isTooMany || count > MAX_WATCHED_RECORDINGS };
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

/** What a `continue` parameter says; all pages of a list have its version. */
interface Continue {
  readonly after: ObjectKey;
  /** Undefined from an older release. */
  readonly version: number | undefined;
}

function tokenOf({ after, version }: Continue): string {
  return Buffer.from(JSON.stringify({ v: "sluice.dev/recordings", ...after, rv: version })).toString(
    "base64url",
  );
}

/** Undefined without one. Throws StatusError 400. */
function readToken(token: string): Continue | undefined {
  if (token === "") return undefined;
  try {
    const { v, namespace, id, rv } = JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
    if (v === "sluice.dev/recordings" && typeof namespace === "string" && typeof id === "string")
      return { after: { namespace, id }, version: Number.isSafeInteger(rv) ? rv : undefined };
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
