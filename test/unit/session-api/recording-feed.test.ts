import { afterEach, describe, expect, it, vi } from "vitest";
import { FolderRecordings, type RecordingsQuery } from "../../../src/session-api/folder-recordings.ts";
import { answerPeer, PeerRecordings } from "../../../src/session-api/peer-recordings.ts";
import {
  type HeldRecordings,
  MAX_WATCHED_RECORDINGS,
  RecordingFeed,
  STORE,
} from "../../../src/session-api/recording-feed.ts";
import { type RecordingObject, recordingObjectOf } from "../../../src/session-api/recording-object.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const KEPT_RECORDINGS_MS = fixedBound("src/session-api/recording-feed.ts", "KEPT_RECORDINGS_MS");

afterEach(() => vi.useRealTimers());

function recording(session: string): RecordingObject {
  const { startedAt } = FACTS;
  const head = { bytes: 1, chunks: 1, end: "completed", endedAt: startedAt, gaps: 0, lines: 1, startedAt };
  const stored = { file: "", facts: { ...FACTS, session }, bytes: 10, endedMs: 5 };
  return recordingObjectOf({ ...stored, head: { ...head, hash: "h", key: "k", session } }, false);
}

/** What the folders have now; `silent` ones do not answer. */
function feedOf(folders: Record<string, string[]>, silent: Set<string> = new Set()): RecordingFeed {
  return new RecordingFeed(async () => ({
    held: Object.entries(folders).flatMap(([holder, names]): HeldRecordings[] =>
      silent.has(holder) ? [] : [{ holder, state: undefined, items: names.map(recording) }],
    ),
    isTooMany: false,
    partial: [...silent].map((replica) => ({ replica, problem: "no answer" })),
  }));
}

const changesSince = (feed: RecordingFeed, version: number) =>
  feed.changesAfter(version)?.map(({ type, object }) => `${type} ${object.metadata.name}`);
const namesIn = (feed: RecordingFeed) => feed.sorted()?.map(({ metadata }) => metadata.name);

describe("the feed of recordings", () => {
  it("tells which came and went, once for replicas that share a folder", async () => {
    const folders: Record<string, string[]> = { "": ["b", "a"], "b:1": ["a", "b"] };
    const feed = feedOf(folders);
    await feed.refresh();
    const version = feed.resourceVersion;
    expect([namesIn(feed), changesSince(feed, version)]).toEqual([["a", "b"], []]);
    folders[""] = folders["b:1"] = ["b", "c"];
    await feed.refresh();
    expect(changesSince(feed, version)).toEqual(["ADDED c", "DELETED a"]);
    expect(feed.sorted()?.map(({ metadata }) => Number(metadata.resourceVersion) - version)).toEqual([0, 1]);
    expect(feed.changesAfter(version - 1)).toBeUndefined();
  });

  it("does not say that a silent replica's recordings went", async () => {
    const folders: Record<string, string[]> = { "": ["a"], "b:1": ["b"], "c:1": ["c"] };
    const silent = new Set(["c:1"]);
    const feed = feedOf(folders, silent);
    await feed.refresh();
    const version = feed.resourceVersion;
    silent.add("b:1").delete("c:1");
    await feed.refresh();
    expect([changesSince(feed, version), namesIn(feed)]).toEqual([["ADDED c"], ["a", "b", "c"]]);
    expect(feed.partial).toEqual([{ replica: "b:1", problem: "no answer" }]);
    folders["b:1"] = [];
    silent.clear();
    await feed.refresh();
    expect(changesSince(feed, version)).toEqual(["ADDED c", "DELETED b"]);
  });

  it("does not say that a failing store's recordings went", async () => {
    let items = [recording("a")];
    let storeProblem: string | undefined;
    const feed = new RecordingFeed(async () => {
      const held = [{ holder: STORE, state: undefined, items }];
      return { held, isTooMany: false, partial: [], storeProblem };
    });
    await feed.refresh();
    const version = feed.resourceVersion;
    items = [];
    storeProblem = "403 AccessDenied";
    await feed.refresh();
    expect([changesSince(feed, version), namesIn(feed)]).toEqual([[], ["a"]]);
    expect(feed.storeProblem).toBe(storeProblem);
    storeProblem = undefined;
    await feed.refresh();
    expect(changesSince(feed, version)).toEqual(["DELETED a"]);
  });

  it("follows a bounded number, and counts again only after a while", async () => {
    vi.useFakeTimers();
    let isTooMany = false;
    let lists = 0;
    const feed = new RecordingFeed(async () => {
      lists += 1;
      return { held: [{ holder: "", state: undefined, items: [recording("a")] }], isTooMany, partial: [] };
    });
    await feed.refresh();
    const version = feed.resourceVersion;
    isTooMany = true;
    for (let each = 0; each < 3; each++) await feed.refresh();
    expect([lists, feed.sorted(), feed.held, feed.changesAfter(version)]).toEqual([
      2,
      undefined,
      undefined,
      undefined,
    ]);
    isTooMany = false;
    await vi.advanceTimersByTimeAsync(60_000);
    await feed.refresh();
    expect(namesIn(feed)).toEqual(["a"]);
    feed.stop();
  });

  it("forgets them when nobody has listed or watched for a while", async () => {
    vi.useFakeTimers();
    const feed = feedOf({ "": ["a"] });
    await feed.refresh();
    const version = feed.resourceVersion;
    const leave = feed.subscribe(() => {});
    await vi.advanceTimersByTimeAsync(2 * KEPT_RECORDINGS_MS);
    expect(changesSince(feed, version)).toEqual([]);
    leave();
    await vi.advanceTimersByTimeAsync(2 * KEPT_RECORDINGS_MS);
    expect([feed.held, feed.changesAfter(version)]).toEqual([undefined, undefined]);
    feed.stop();
  });
});

describe("all that other replicas have", () => {
  /** A folder whose state is given. */
  class ScriptedFolder extends FolderRecordings {
    pages = 0;
    readonly names: string[];
    constructor(names: string[]) {
      super(undefined);
      this.names = names;
    }
    override async state(): Promise<string> {
      return this.names.join();
    }
    override async page({ limit }: RecordingsQuery) {
      this.pages += 1;
      return { items: this.names.slice(0, limit).map(recording), remaining: 0 };
    }
  }
  const peersOf = (answer: (question: object) => Promise<object>) =>
    new PeerRecordings(() => ({
      askRecordings: async (question) => [{ replica: "b:1", answer: await answer(question) }],
      askRecordingsOf: async (_replica, question) => answer(question),
    }));

  it("is asked for again only where something came or went", async () => {
    const folder = new ScriptedFolder(["a"]);
    const peers = peersOf((question) => answerPeer(folder, question));
    const first = await peers.everything([]);
    expect(first.held).toEqual([{ holder: "b:1", state: "a", items: [recording("a")] }]);
    expect((await peers.everything(first.held)).held).toEqual(first.held);
    expect(folder.pages).toBe(1);
    folder.names.push("b");
    expect((await peers.everything(first.held)).held[0]?.items).toHaveLength(2);
    expect(folder.pages).toBe(2);
  });

  it("is too much past a bound", async () => {
    const items = Array.from({ length: 1_000 }, (_, index) => recording(String(index).padStart(6, "0")));
    let asked = 0;
    // Names rise, as those of further pages do.
    const peers = peersOf(async () => {
      const page = items.map(({ metadata, ...rest }) => ({
        ...rest,
        metadata: { ...metadata, name: `${String(asked).padStart(4, "0")}-${metadata.name}` },
      }));
      asked += 1;
      return { items: page, remaining: 1 };
    });
    expect((await peers.everything([])).isTooMany).toBe(true);
    expect(asked).toBe(MAX_WATCHED_RECORDINGS / 1_000 + 1);
  });
});
