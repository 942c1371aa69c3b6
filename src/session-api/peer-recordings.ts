import { isRecord } from "@sluice/client/internal/api/status-body";
import type { SessionLists } from "../admin/admin-server.ts";
import { isDeeperThan, MAX_OBJECT_DEPTH } from "../api/is-deeper-than.ts";
import { ListCost } from "../api/list-cost.ts";
import {
  type FolderRecordings,
  keyOf,
  RECORDING_PART_BYTES,
  type RecordingsPage,
  type RecordingsQuery,
} from "./folder-recordings.ts";
import { compareKeys, type ObjectKey } from "./polled-feed.ts";
import { type EveryRecording, type HeldRecordings, MAX_WATCHED_RECORDINGS } from "./recording-feed.ts";
import type { RecordingObject } from "./recording-object.ts";

/** Recordings in one answer of another replica. Past it the next page begins. */
const PEER_PAGE_RECORDINGS = 1_000;
/**
 * Characters of one answer's recordings, half of what the other replica reads. Past it the next
 * page begins.
 */
const MAX_RECORDINGS_PAGE_CHARACTERS = 2 * 1024 * 1024;
/** Recordings that one list reads from a replica. Past it the list's Warning names the replica. */
const MAX_PEER_RECORDINGS = 100_000;

/** One other replica's answer. */
interface PeerAnswer {
  /** Its name for operators. */
  readonly replica: string;
  readonly answer?: unknown;
  /** Why it did not answer. */
  readonly problem?: string;
}

/** Sends questions about recordings to other replicas. */
interface AskPeers {
  /** Asks every other replica. Never rejects. */
  askRecordings(question: object): Promise<readonly PeerAnswer[]>;
  /** Asks the replica with this name. Rejects with an Error for operators. */
  askRecordingsOf(replica: string, question: object): Promise<unknown>;
}

type Partial = SessionLists["partial"];

interface PeerPages {
  readonly pages: readonly RecordingsPage[];
  readonly partial: Partial;
}

/** A recording of another replica. `partial`: replicas that did not answer and may have it. */
interface PeerRecording {
  readonly found?: { readonly replica: string; readonly recording: RecordingObject } | undefined;
  readonly partial: Partial;
}

/** The finished recordings in the folders of other replicas. */
export class PeerRecordings {
  readonly #peers: () => AskPeers | undefined;

  /** `peers` returns undefined if this gateway is the only replica. */
  constructor(peers: () => AskPeers | undefined) {
    this.#peers = peers;
  }

  /** One page of each replica's recordings, complete up to the query's limit. Never rejects. */
  async pages(query: RecordingsQuery): Promise<PeerPages> {
    const answers = (await this.#peers()?.askRecordings(questionOf(query, 0))) ?? [];
    const partial: Partial[number][] = [];
    const pages = await Promise.all(
      answers.map(async ({ replica, answer, problem }) => {
        try {
          if (problem !== undefined) throw new Error(problem);
          return [await this.#rest(replica, query, readPage(answer))];
        } catch (error) {
          partial.push({ replica, problem: (error as Error).message });
          return [];
        }
      }),
    );
    return { pages: pages.flat(), partial };
  }

  /**
   * All recordings of each replica. A folder whose state is in `before` is not sent again. Never
   * rejects.
   */
  async everything(before: readonly HeldRecordings[]): Promise<EveryRecording> {
    const query = { labels: "", fields: "", limit: MAX_WATCHED_RECORDINGS + 1 };
    const byState = new Map(before.flatMap((each) => (each.state === undefined ? [] : [[each.state, each]])));
    const question = { ...questionOf(query, 0), unless: [...byState.keys()] };
    const answers = (await this.#peers()?.askRecordings(question)) ?? [];
    const partial: Partial[number][] = [];
    let isTooMany = false;
    const held = await Promise.all(
      answers.map(async ({ replica: holder, answer, problem }) => {
        try {
          if (problem !== undefined) throw new Error(problem);
          const state = isRecord(answer) && typeof answer.state === "string" ? answer.state : undefined;
          const same = isRecord(answer) && answer.isSame === true && byState.get(state ?? "");
          if (same) return [{ ...same, holder }];
          const { items, remaining, isCut } = await this.#rest(holder, query, readPage(answer));
          if (remaining > 0 || isCut) isTooMany = true;
          return [{ holder, state, items }];
        } catch (error) {
          partial.push({ replica: holder, problem: (error as Error).message });
          return [];
        }
      }),
    );
    return { held: held.flat(), isTooMany, partial };
  }

  /** Never rejects. */
  async find(key: ObjectKey): Promise<PeerRecording> {
    const answers = (await this.#peers()?.askRecordings({ want: "find", ...key })) ?? [];
    const [found] = answers.flatMap(({ replica, answer }) => {
      const recording = isRecord(answer) ? answer.recording : undefined;
      const isFound = isRecording(recording) && compareKeys(keyOf(recording), key) === 0;
      return isFound ? [{ replica, recording }] : [];
    });
    const partial = answers.flatMap(({ replica, problem }) =>
      problem === undefined ? [] : { replica, problem },
    );
    return { found, partial };
  }

  /** Bytes `start` to `end`, inclusive. Throws Error if the replica sends fewer. */
  async *content(
    replica: string,
    key: ObjectKey,
    start: number,
    end: number,
  ): AsyncGenerator<Uint8Array, void> {
    for (let at = start; at <= end; ) {
      const bytes = Math.min(RECORDING_PART_BYTES, end + 1 - at);
      const answer = await this.#peers()?.askRecordingsOf(replica, { want: "part", ...key, at, bytes });
      const data = isRecord(answer) && typeof answer.data === "string" ? answer.data : "";
      const part = Buffer.from(data, "base64");
      if (part.byteLength !== bytes) throw new Error(`replica ${replica} has not all of the recording`);
      yield part;
      at += bytes;
    }
  }

  /**
   * Returns false if the replica no longer has the recording. Rejects with an Error for operators.
   */
  async delete(replica: string, key: ObjectKey, reason: string): Promise<boolean> {
    const answer = await this.#peers()?.askRecordingsOf(replica, { want: "delete", ...key, reason });
    return isRecord(answer) && answer.isDeleted === true;
  }

  async #rest(replica: string, query: RecordingsQuery, first: RecordingsPage): Promise<RecordingsPage> {
    const items = [...first.items];
    const cost = new ListCost();
    cost.add(items);
    let { remaining, isCut } = first;
    while (remaining > 0 && (query.limit === 0 || items.length < query.limit)) {
      const last = items.at(-1);
      if (last === undefined || items.length >= MAX_PEER_RECORDINGS)
        throw new Error(`it has more than ${MAX_PEER_RECORDINGS} recordings`);
      const question = questionOf({ ...query, after: keyOf(last) }, items.length);
      const page = readPage(await this.#peers()?.askRecordingsOf(replica, question));
      const next = page.items[0];
      if (next === undefined || compareKeys(keyOf(next), keyOf(last)) <= 0)
        throw new Error("its pages do not go on");
      cost.add(page.items);
      items.push(...page.items);
      remaining = page.remaining;
      isCut = page.isCut;
    }
    return { items, remaining, isCut };
  }
}

function questionOf({ limit, ...query }: RecordingsQuery, had: number): object {
  const wanted = limit === 0 ? PEER_PAGE_RECORDINGS : Math.min(limit - had, PEER_PAGE_RECORDINGS);
  return { want: "page", ...query, limit: wanted };
}

/**
 * Answers another replica's question from this replica's folder. Rejects with an Error for an
 * invalid question.
 */
export async function answerPeer(folder: FolderRecordings, question: unknown): Promise<object> {
  if (!isRecord(question)) throw new TypeError("the question must be an object");
  const { want, namespace, id, at, bytes } = question;
  if (want === "page") return await pageFor(folder, question);
  if (typeof namespace !== "string" || typeof id !== "string")
    throw new TypeError("the question must name a recording");
  const key = { namespace, id };
  if (want === "find") return { recording: await folder.find(key) };
  if (want === "delete") return { isDeleted: await folder.delete(key, String(question.reason)) };
  const isPart = Number.isSafeInteger(at) && Number.isSafeInteger(bytes);
  const [from, length] = [Number(at), Number(bytes)];
  if (want !== "part" || !isPart || from < 0 || length <= 0 || length > RECORDING_PART_BYTES)
    throw new TypeError("the question must ask for a part of a recording");
  return { data: (await folder.part(key, from, length))?.toString("base64") };
}

/** A page, or only `isSame` if the folder's state is one of `unless`. */
async function pageFor(folder: FolderRecordings, question: Record<string, unknown>): Promise<object> {
  const query = queryOf(question);
  const { unless } = question;
  if (!Array.isArray(unless)) return shortened(await folder.page(query));
  // Read before the page: if a recording comes in between, the next question sees a changed state.
  const state = await folder.state();
  if (unless.includes(state)) return { isSame: true, state };
  return { ...shortened(await folder.page(query)), state };
}

function queryOf({ namespace, labels, fields, after, limit }: Record<string, unknown>): RecordingsQuery {
  const isQuery = typeof labels === "string" && typeof fields === "string" && Number.isSafeInteger(limit);
  if (!isQuery) throw new TypeError("the question must ask for a page");
  const key = isRecord(after) ? { namespace: String(after.namespace), id: String(after.id) } : undefined;
  const bounded = Math.min(Math.max(1, Number(limit)), PEER_PAGE_RECORDINGS);
  const of = typeof namespace === "string" ? namespace : undefined;
  return { namespace: of, labels, fields, after: key, limit: bounded };
}

/** Cuts the page at the bound, but keeps at least one recording. */
function shortened({ items, remaining, isCut }: RecordingsPage): RecordingsPage {
  let characters = 0;
  const cut = items.findIndex((item, index) => {
    characters += JSON.stringify(item).length;
    return index > 0 && characters > MAX_RECORDINGS_PAGE_CHARACTERS;
  });
  const kept = cut === -1 ? items : items.slice(0, cut);
  return { items: kept, remaining: remaining + items.length - kept.length, isCut };
}

/** Drops malformed recordings. Throws Error if there is no list. */
function readPage(answer: unknown): RecordingsPage {
  const { items, remaining, isCut } = isRecord(answer) ? answer : {};
  if (!Array.isArray(items)) throw new Error("the answer has no list of recordings");
  const own = items.filter(isRecording).sort((one, other) => compareKeys(keyOf(one), keyOf(other)));
  return { items: own, remaining: countOf(remaining), isCut: isCut === true };
}

function countOf(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) > 0 ? (value as number) : 0;
}

const TEXTS = {
  spec: ["pod", "subresource", "node", "rule"],
  status: ["startedAt", "endedAt", "end", "hash", "key"],
};

function isRecording(value: unknown): value is RecordingObject {
  if (!isRecord(value) || value.kind !== "Recording" || isDeeperThan(value, MAX_OBJECT_DEPTH)) return false;
  const { metadata, spec, status } = value;
  if (!isRecord(metadata) || !isRecord(spec) || !isRecord(status) || !isRecord(spec.user)) return false;
  const numbers = [status.outputBytes, status.gaps, status.fileBytes];
  return (
    areTexts([metadata.name, metadata.namespace, metadata.creationTimestamp, spec.user.username]) &&
    areTexts(TEXTS.spec.map((name) => spec[name])) &&
    areTexts(TEXTS.status.map((name) => status[name])) &&
    numbers.every((each) => Number.isSafeInteger(each) && (each as number) >= 0)
  );
}

function areTexts(values: readonly unknown[]): boolean {
  return values.every((value) => typeof value === "string");
}
