import { describe, expect, it } from "vitest";
import {
  FolderRecordings,
  RECORDING_PART_BYTES,
  type RecordingsPage,
  type RecordingsQuery,
} from "../../../src/session-api/folder-recordings.ts";
import { mergePages } from "../../../src/session-api/merge-recordings.ts";
import { answerPeer, PeerRecordings } from "../../../src/session-api/peer-recordings.ts";
import { type RecordingObject, recordingObjectOf } from "../../../src/session-api/recording-object.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const MAX_PEER_LIST_CHARACTERS = fixedBound("src/api/list-cost.ts", "MAX_PEER_LIST_CHARACTERS");
const MAX_PEER_RECORDINGS = fixedBound("src/session-api/peer-recordings.ts", "MAX_PEER_RECORDINGS");
const MAX_RECORDINGS_PAGE_CHARACTERS = fixedBound(
  "src/session-api/peer-recordings.ts",
  "MAX_RECORDINGS_PAGE_CHARACTERS",
);
const PEER_PAGE_RECORDINGS = fixedBound("src/session-api/peer-recordings.ts", "PEER_PAGE_RECORDINGS");

const HEAD = { bytes: 1, chunks: 1, end: "completed", endedAt: FACTS.startedAt, gaps: 0, lines: 1 };

function recording(id: string, user = "ana"): RecordingObject {
  const facts = { ...FACTS, session: id, user };
  const head = { ...HEAD, hash: "h", key: "k", session: id, startedAt: facts.startedAt };
  return recordingObjectOf({ file: "", facts, head, bytes: 10, endedMs: 5 }, false);
}

const numbered = (count: number): RecordingObject[] =>
  Array.from({ length: count }, (_, index) => recording(String(index).padStart(8, "0")));
const namesOf = ({ items }: Pick<RecordingsPage, "items">) => items.map(({ metadata }) => metadata.name);
const ALL: RecordingsQuery = { labels: "", fields: "", limit: 0 };

/** A replica with these recordings, and how often it was asked. */
class ScriptedFolder extends FolderRecordings {
  asked = 0;
  readonly #all: readonly RecordingObject[];
  constructor(all: readonly RecordingObject[]) {
    super(undefined);
    this.#all = all;
  }
  override async page({ after, limit }: RecordingsQuery): Promise<RecordingsPage> {
    this.asked += 1;
    const from =
      after === undefined ? 0 : this.#all.findIndex(({ metadata }) => metadata.name === after.id) + 1;
    const items = this.#all.slice(from, from + limit);
    return { items, remaining: this.#all.length - from - items.length };
  }
}

function peersOf(answer: (question: unknown) => unknown): PeerRecordings {
  const throughJson = async (question: object) =>
    JSON.parse(JSON.stringify((await answer(JSON.parse(JSON.stringify(question)))) ?? null));
  return new PeerRecordings(() => ({
    askRecordings: async (question) => [{ replica: "b:1", answer: await throughJson(question) }],
    askRecordingsOf: async (_replica, question) => throughJson(question),
  }));
}

describe("recordings of another replica", () => {
  it("are collected page by page, up to the limit", async () => {
    const folder = new ScriptedFolder(numbered(2 * PEER_PAGE_RECORDINGS + 1));
    const peers = peersOf((question) => answerPeer(folder, question));
    const { pages, partial } = await peers.pages(ALL);
    expect([pages[0]?.items.length, pages[0]?.remaining, partial]).toEqual([
      2 * PEER_PAGE_RECORDINGS + 1,
      0,
      [],
    ]);
    expect(folder.asked).toBe(3);
    const limit = PEER_PAGE_RECORDINGS + 2;
    const [page] = (await peers.pages({ ...ALL, limit })).pages;
    expect([page?.items.length, page?.remaining]).toEqual([limit, PEER_PAGE_RECORDINGS - 1]);
  });

  it("of a folder past its bound say so, and cannot be watched", async () => {
    const page = { items: numbered(1), remaining: 0, isCut: true };
    const folder = new ScriptedFolder([]);
    folder.page = async () => page;
    folder.state = async () => "some";
    const peers = peersOf((question) => answerPeer(folder, question));
    expect((await peers.pages(ALL)).pages).toEqual([page]);
    expect((await peers.everything([])).isTooMany).toBe(true);
    expect(mergePages([{ items: [], remaining: 0 }, page], 0).isCut).toBe(true);
  });

  it("with long names come in more pages", async () => {
    const long = numbered(100).map((each) => recording(each.metadata.name, "u".repeat(100_000)));
    const folder = new ScriptedFolder(long);
    const first = (await answerPeer(folder, { want: "page", ...ALL, limit: 100 })) as RecordingsPage;
    expect(JSON.stringify(first.items).length).toBeLessThan(MAX_RECORDINGS_PAGE_CHARACTERS + 1_000);
    expect(first.items.length + first.remaining).toBe(100);
    const { pages } = await peersOf((question) => answerPeer(folder, question)).pages(ALL);
    expect(pages.flatMap(namesOf)).toEqual(namesOf({ items: long }));
  });

  it("past a bound, or in pages that do not go on, are named as missing", async () => {
    const folder = new ScriptedFolder(numbered(MAX_PEER_RECORDINGS + 1));
    const page = (question: unknown) => answerPeer(folder, question);
    const problemOf = async (answer: (question: unknown) => unknown) => {
      const { pages, partial } = await peersOf(answer).pages(ALL);
      expect(pages).toEqual([]);
      return partial;
    };
    expect(await problemOf(page)).toEqual([
      { replica: "b:1", problem: `it has more than ${MAX_PEER_RECORDINGS} recordings` },
    ]);
    const same = { items: numbered(2), remaining: 1 };
    expect(await problemOf(() => same)).toEqual([{ replica: "b:1", problem: "its pages do not go on" }]);
    expect(await problemOf(() => undefined)).toEqual([
      { replica: "b:1", problem: "the answer has no list of recordings" },
    ]);
  });

  it("that would fill the memory are named as missing", async () => {
    const member = "x".repeat(4_000_000);
    let asked = 0;
    const peers = peersOf(() => {
      asked += 1;
      const items = [{ ...recording(String(asked).padStart(8, "0")), member }];
      return { items, remaining: 1 };
    });
    const { pages, partial } = await peers.pages({ ...ALL, limit: 500 });
    expect(pages).toEqual([]);
    expect(partial).toEqual([{ replica: "b:1", problem: "its list takes too much memory" }]);
    expect(asked).toBeLessThanOrEqual(MAX_PEER_LIST_CHARACTERS / member.length + 1);
  });

  it("are left out if they are malformed", async () => {
    const [good] = numbered(1);
    const deep: unknown = JSON.parse("[".repeat(70) + "]".repeat(70));
    const bad = [
      null,
      {},
      { ...good, kind: "Pod" },
      { ...good, spec: {} },
      { ...good, status: { gaps: "1" } },
      { ...good, deep },
    ];
    const { pages } = await peersOf(() => ({ items: [...bad, good], remaining: -1 })).pages(ALL);
    expect(pages).toMatchObject([{ remaining: 0 }]);
    expect(pages.flatMap(namesOf)).toEqual(["00000000"]);
    const other = peersOf(() => ({ recording: good }));
    expect((await other.find({ namespace: "other", id: "00000000" })).found).toBeUndefined();
  });

  it("whose content is shorter than they said fail", async () => {
    const peers = peersOf(() => ({ data: "" }));
    const content = peers.content("b:1", { namespace: "default", id: "x" }, 0, 9);
    await expect(content.next()).rejects.toThrow("has not all of the recording");
  });

  it.each([
    undefined,
    {},
    { want: "page", labels: "", fields: "" },
    { want: "find" },
    { want: "part", namespace: "n", id: "x", at: -1, bytes: 1 },
    { want: "part", namespace: "n", id: "x", at: 0, bytes: RECORDING_PART_BYTES + 1 },
  ])("a question that is none gets no answer: %o", async (question) => {
    await expect(answerPeer(new FolderRecordings(undefined), question)).rejects.toThrow(/it|the question/);
  });
});

describe("pages of several folders", () => {
  const [a, b, c] = numbered(3) as [RecordingObject, RecordingObject, RecordingObject];

  it("become one, in order, up to the limit", () => {
    const pages = [
      { items: [a, c], remaining: 4 },
      { items: [b], remaining: 0 },
    ];
    expect(mergePages(pages, 2)).toEqual({ items: [a, b], remaining: 5, isExact: true, isCut: false });
    expect(mergePages(pages, 0).items).toEqual([a, b, c]);
  });

  it("show a recording once, and count nothing exactly then", () => {
    const page = { items: [a, b], remaining: 1 };
    expect(mergePages([page, page], 2)).toEqual({
      items: [a, b],
      remaining: 2,
      isExact: false,
      isCut: false,
    });
  });
});
