import { afterEach, describe, expect, it, vi } from "vitest";
import type { AdminSession, SessionLists } from "../../../src/admin/admin-server.ts";
import { SessionFeed } from "../../../src/session-api/session-pager.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { listedSession as row } from "../../support/listed-session.ts";

// The periods under test.
const WATCH_PERIOD_MS = 1_000;
const MODIFIED_PERIOD_MS = 10_000;

const MAX_REMEMBERED_CHANGES = fixedBound("src/session-api/polled-feed.ts", "MAX_REMEMBERED_CHANGES");
const MAX_MODIFIED_AT_ONCE = fixedBound("src/session-api/session-pager.ts", "MAX_MODIFIED_AT_ONCE");

afterEach(() => vi.useRealTimers());

function feedOf(lists: () => Partial<SessionLists>): SessionFeed {
  return new SessionFeed(async () => ({ sessions: [], partial: [], ...lists() }));
}

const typesAfter = (feed: SessionFeed, version: number) =>
  feed.changesAfter(version)?.map(({ type, object }) => `${type} ${object.metadata.name.slice(-1)}`);

describe("changes of the listed sessions", () => {
  it("are what began and what ended between two lists", async () => {
    let sessions: AdminSession[] = [row(1), row(2)];
    const feed = feedOf(() => ({ sessions }));
    await feed.refresh();
    const version = feed.resourceVersion;
    sessions = [row(2), row(3)];
    await feed.refresh();
    expect(typesAfter(feed, version)).toEqual(["ADDED 3", "DELETED 1"]);
    expect(feed.get("", "default", row(3).id)?.metadata.resourceVersion).toBe(String(version + 1));
    expect(feed.get("", "other", row(3).id)).toBeUndefined();
    expect(typesAfter(feed, feed.resourceVersion)).toEqual([]);
    for (const unknown of [version + 100, 1]) expect(feed.changesAfter(unknown)).toBeUndefined();
  });

  it("do not end the sessions of a replica that does not answer", async () => {
    let lists: Partial<SessionLists> = {
      sessions: [
        { ...row(1), replica: "10.0.0.1:9" },
        { ...row(2), replica: "10.0.0.2:9" },
      ],
    };
    const feed = feedOf(() => lists);
    await feed.refresh();
    const version = feed.resourceVersion;
    lists = { partial: [{ replica: "10.0.0.1:9", problem: "no answer" }] };
    await feed.refresh();
    expect(typesAfter(feed, version)).toEqual(["DELETED 2"]);
    expect(feed.sorted()).toHaveLength(1);
  });

  it("do not end the sessions of a worker that does not answer, here or in another replica", async () => {
    const peer = "10.0.0.1:9";
    const sessions: AdminSession[] = [
      { ...row(1), worker: 0 },
      { ...row(2), worker: 1 },
      { ...row(3), worker: 0, replica: peer },
      { ...row(4), worker: 1, replica: peer },
    ];
    let lists: Partial<SessionLists> = { sessions };
    const feed = feedOf(() => lists);
    await feed.refresh();
    const version = feed.resourceVersion;
    const problem = "the worker does not answer";
    lists = {
      partial: [
        { worker: 1, problem },
        { replica: peer, worker: 0, problem },
      ],
    };
    await feed.refresh();
    expect(typesAfter(feed, version)).toEqual(["DELETED 1", "DELETED 4"]);
    lists = {};
    await feed.refresh();
    expect(typesAfter(feed, version)).toEqual(["DELETED 1", "DELETED 4", "DELETED 2", "DELETED 3"]);
  });

  it("of bytes are reported, each session's once in a while, and so many at once", async () => {
    let nowMs = 0;
    let bytes = 0;
    const count = MAX_MODIFIED_AT_ONCE + 1;
    const feed = new SessionFeed(
      async () => ({
        sessions: Array.from({ length: count }, (_, index) => ({
          ...row(index),
          // The last one is silent.
          downstreamBytes: index === count - 1 ? 0 : bytes,
        })),
        partial: [],
      }),
      () => nowMs,
    );
    await feed.refresh();
    const version = feed.resourceVersion;
    bytes = 5;
    await feed.refresh();
    expect(feed.changesAfter(version)).toEqual([]);
    nowMs = MODIFIED_PERIOD_MS;
    await feed.refresh();
    const changes = feed.changesAfter(version) ?? [];
    expect(changes).toHaveLength(MAX_MODIFIED_AT_ONCE);
    expect(changes[0]).toMatchObject({ type: "MODIFIED", object: { status: { bytesToClient: 5 } } });
    expect(changes[0]?.previous).toBeDefined();
    bytes = 6;
    await feed.refresh();
    expect(feed.changesAfter(version)).toHaveLength(MAX_MODIFIED_AT_ONCE);
    const [first] = feed.sorted();
    expect(first?.version).toBe(changes[0]?.resourceVersion);
    expect(first?.session.downstreamBytes).toBe(6);
  });

  it("past what one list may report wait for the next list", async () => {
    let nowMs = 0;
    let bytes = 0;
    const feed = new SessionFeed(
      async () => ({
        sessions: Array.from({ length: MAX_MODIFIED_AT_ONCE + 2 }, (_, index) => ({
          ...row(index),
          upstreamBytes: bytes,
        })),
        partial: [],
      }),
      () => nowMs,
    );
    await feed.refresh();
    const version = feed.resourceVersion;
    bytes = 1;
    nowMs = MODIFIED_PERIOD_MS;
    await feed.refresh();
    await feed.refresh();
    const names = (feed.changesAfter(version) ?? []).map(({ object }) => object.metadata.name);
    expect([names.length, new Set(names).size]).toEqual([MAX_MODIFIED_AT_ONCE + 2, MAX_MODIFIED_AT_ONCE + 2]);
  });

  it("are forgotten past a bound, and a watch of before gets 410", async () => {
    let count = 0;
    const feed = feedOf(() => ({ sessions: Array.from({ length: count }, (_, index) => row(index)) }));
    const version = feed.resourceVersion;
    count = MAX_REMEMBERED_CHANGES;
    await feed.refresh();
    expect(feed.changesAfter(version)).toHaveLength(MAX_REMEMBERED_CHANGES);
    count += 1;
    await feed.refresh();
    expect(feed.changesAfter(version)).toBeUndefined();
    expect(feed.changesAfter(version + 1)).toHaveLength(MAX_REMEMBERED_CHANGES);
  });

  it("are looked for once a second while a client watches, and not longer", async () => {
    vi.useFakeTimers();
    let lists = 0;
    const feed = feedOf(() => {
      lists += 1;
      return {};
    });
    const [stop, stopOther] = [feed.subscribe(() => {}), feed.subscribe(() => {})];
    await vi.advanceTimersByTimeAsync(3 * WATCH_PERIOD_MS);
    expect(lists).toBe(3);
    stop();
    await vi.advanceTimersByTimeAsync(WATCH_PERIOD_MS);
    expect(lists).toBe(4);
    stopOther();
    await vi.advanceTimersByTimeAsync(10 * WATCH_PERIOD_MS);
    expect(lists).toBe(4);
  });

  it("a list never shows what was collected before it was asked for, and many share one", async () => {
    const releases: (() => void)[] = [];
    const feed = new SessionFeed(
      () => new Promise((resolve) => releases.push(() => resolve({ sessions: [], partial: [] }))),
    );
    const first = feed.refresh();
    const later = [feed.refresh(), feed.refresh(), feed.refresh()];
    expect(releases).toHaveLength(1);
    releases[0]?.();
    await first;
    await vi.waitFor(() => expect(releases).toHaveLength(2));
    releases[1]?.();
    await Promise.all(later);
    expect(releases).toHaveLength(2);
  });
});
