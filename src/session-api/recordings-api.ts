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
import type { StoredRecording } from "../recording/reading/recording-index.ts";
import { readDeleteOptions } from "./delete-options.ts";
import { FolderRecordings, keyOf, type RecordingsQuery } from "./folder-recordings.ts";
import { firstPageOf, mergePages, readToken, tokenOf } from "./merge-recordings.ts";
import { PeerRecordings } from "./peer-recordings.ts";
import type { ObjectKey } from "./polled-feed.ts";
import {
  type EveryRecording,
  type HeldRecordings,
  MAX_WATCHED_RECORDINGS,
  RecordingFeed,
  STORE,
} from "./recording-feed.ts";
import { RECORDINGS, type RecordingObject, recordingObjectOf } from "./recording-object.ts";
import { StoreRecordings } from "./store-recordings.ts";
import { SESSIONS_GROUP } from "./streaming-session.ts";

const RESOURCE = qualifiedNameOf(RECORDINGS);
const CONTENT_TYPE = "application/x-asciicast";

export interface RecordingsPath extends ResourcePath {
  readonly subresource: string | undefined;
}

export interface RecordingsPlaces {
  readonly own: FolderRecordings;
  readonly peers: PeerRecordings;
  readonly store: StoreRecordings;
}

/** For a gateway that records nothing and has no other replicas. */
const NO_RECORDINGS: RecordingsPlaces = {
  own: new FolderRecordings(undefined),
  peers: new PeerRecordings(() => undefined),
  store: new StoreRecordings(undefined),
};

/** `replica`: the other replica that has it. `stored`: set if the store has it, and no folder. */
interface Found {
  readonly recording: RecordingObject;
  readonly replica?: string | undefined;
  readonly stored?: StoredRecording | undefined;
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
  readonly #store: StoreRecordings;
  readonly #feed = new RecordingFeed((before) => this.#everything(before));

  constructor(places: Partial<RecordingsPlaces> = {}) {
    const { own, peers, store } = { ...NO_RECORDINGS, ...places };
    this.#own = own;
    this.#peers = peers;
    this.#store = store;
  }

  stop(): void {
    this.#feed.stop();
    this.#store.stop();
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
    const { pages, partial, storeProblem } =
      token === undefined && held !== undefined
        ? {
            pages: held.map(({ items }) => firstPageOf(items, isWatched, limit)),
            partial: this.#feed.partial,
            storeProblem: this.#feed.storeProblem,
          }
        : await this.#pages(wanted);
    const { items, remaining, isExact, isCut } = mergePages(pages, limit);
    const last = items.at(-1);
    const metadata = {
      resourceVersion: String(version),
      ...(remaining > 0 && last !== undefined && { continue: tokenOf({ after: keyOf(last), version }) }),
      ...(remaining > 0 && isExact && { remainingItemCount: remaining }),
    };
    const answer = jsonAnswer(present.list(items, metadata));
    const warning = [partialWarningOf(partial), storeWarningOf(storeProblem), isCut ? CUT_WARNING : ""]
      .filter(Boolean)
      .join(", ");
    return warning === "" ? answer : { ...answer, headers: { ...answer.headers, Warning: warning } };
  }

  async #pages(
    wanted: RecordingsQuery,
  ): Promise<Awaited<ReturnType<PeerRecordings["pages"]>> & { readonly storeProblem?: string | undefined }> {
    const [own, peers, store] = await Promise.all([
      this.#own.page(wanted),
      this.#peers.pages(wanted),
      this.#store.page(wanted),
    ]);
    return { ...peers, pages: [own, ...peers.pages, store], storeProblem: store.problem };
  }

  /** Recordings are added and deleted, but never modified. */
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
    const [{ items, isCut = false }, peers, store] = await Promise.all([
      this.#own.page(query),
      this.#peers.everything(before),
      this.#store.page(query),
    ]);
    const held = [
      { holder: "", state: undefined, items },
      ...peers.held,
      { holder: STORE, state: undefined, items: store.items },
    ];
    const count = held.reduce((sum, each) => sum + each.items.length, 0);
    const isTooMany = isCut || peers.isTooMany || count > MAX_WATCHED_RECORDINGS;
    return { ...peers, held, isTooMany, storeProblem: store.problem };
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
    // The list would still show it, and `kubectl delete` would wait for it to go.
    if ((await this.#inStore(keyOf(recording))) !== undefined)
      throw WIRE_ERRORS["recording-stored"].streaming({ resource: RESOURCE, name });
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
    { recording, replica, stored }: Found,
    start: number,
    end: number,
  ): Promise<AsyncGenerator<Uint8Array>> {
    const key = keyOf(recording);
    if (replica !== undefined) return this.#peers.content(replica, key, start, end);
    if (stored !== undefined) return this.#store.content(stored, start, end);
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
    const stored = await this.#inStore(key);
    if (stored !== undefined) return { recording: recordingObjectOf(stored, true), stored };
    if (partial.length > 0) throw WIRE_ERRORS["recording-unreachable"].streaming({ name });
    throw WIRE_ERRORS["object-unknown"].streaming({ resource: RESOURCE, name });
  }

  /**
   * Undefined if the store does not have it. Throws StatusError 503 if the store cannot be read.
   */
  async #inStore(key: ObjectKey): Promise<StoredRecording | undefined> {
    try {
      return await this.#store.find(key);
    } catch (error) {
      const { message: problem } = error as Error;
      throw WIRE_ERRORS["recording-store-failed"].streaming({ name: key.id, problem });
    }
  }
}

const CUT_WARNING = '299 - "the list lacks the oldest recordings of a folder that has too many"';

/** The Warning header of a list; undefined if nothing of the store is missing. */
function storeWarningOf(problem: string | undefined): string | undefined {
  if (problem === undefined) return undefined;
  return `299 - ${JSON.stringify(`the list may lack recordings of the store: ${problem}`)}`;
}

/**
 * The first and last byte of a range. Undefined for the whole content, which unsupported ranges
 * get, too.
 */
function partOf(range: string, bytes: number): readonly [start: number, end: number] | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range) ?? [];
  if (first === "" && last === "") return undefined;
  if (first === "") return [Math.max(0, bytes - Number(last)), last === "0" ? -1 : bytes - 1];
  return [Number(first), Math.min(bytes - 1, last === "" ? bytes - 1 : Number(last))];
}
