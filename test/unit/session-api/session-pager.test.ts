import { afterEach, describe, expect, it, vi } from "vitest";
import type { AdminSession } from "../../../src/admin/admin-server.ts";
import { SessionFeed, SessionPager } from "../../../src/session-api/session-pager.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { listedSession as row } from "../../support/listed-session.ts";

const KEPT_SESSION_LIST_MS = fixedBound("src/session-api/session-pager.ts", "KEPT_SESSION_LIST_MS");
const MAX_CONTINUE_AGE_MS = fixedBound("src/session-api/session-pager.ts", "MAX_CONTINUE_AGE_MS");
const MAX_KEPT_SESSION_LISTS = fixedBound("src/session-api/session-pager.ts", "MAX_KEPT_SESSION_LISTS");

let running: AdminSession[] = [];
let listed = 0;
let nowMs = 1_000_000;
const pagers: SessionPager[] = [];

function pager(): SessionPager {
  const feed = new SessionFeed(async () => {
    listed += 1;
    return { sessions: running, partial: [] };
  });
  const made = new SessionPager(feed, () => nowMs);
  pagers.push(made);
  return made;
}

afterEach(() => {
  for (const each of pagers.splice(0)) each.stop();
  vi.useRealTimers();
  listed = 0;
  nowMs = 1_000_000;
});

const query = (fields: Record<string, string>) => new URLSearchParams(fields);

async function page(of: SessionPager, fields: Record<string, string>, namespace?: string) {
  const { objects, metadata } = await of.page(query(fields), namespace, undefined);
  return {
    pods: objects.map(({ spec }) => (spec as { pod: string }).pod),
    next: metadata.continue as string | undefined,
    left: metadata.remainingItemCount,
    version: metadata.resourceVersion,
  };
}

describe("pages of a list of sessions", () => {
  it("are in the order of namespaces and names, and of one moment", async () => {
    running = [row(3), row(1, "a"), row(2), row(0, "z")];
    const of = pager();
    const first = await page(of, { limit: "2" });
    expect([first.pods, first.left]).toEqual([["pod-1", "pod-2"], 2]);
    running = [row(9)];
    const second = await page(of, { limit: "2", continue: first.next ?? "" });
    expect([second.pods, second.next, second.version]).toEqual([
      ["pod-3", "pod-0"],
      undefined,
      first.version,
    ]);
    expect(listed).toBe(1);
  });

  it("go on in another process, behind the last session, with what runs then", async () => {
    running = [row(1), row(2), row(3)];
    const first = await page(pager(), { limit: "2" });
    running = [row(0), row(2), row(3), row(4)];
    const second = await page(pager(), { limit: "2", continue: first.next ?? "" });
    expect([second.pods, second.next]).toEqual([["pod-3", "pod-4"], undefined]);
  });

  it("go on with a new list if the rest is no longer kept", async () => {
    vi.useFakeTimers();
    running = [row(1), row(2)];
    const of = pager();
    const { next = "" } = await page(of, { limit: "1" });
    vi.advanceTimersByTime(KEPT_SESSION_LIST_MS);
    expect(of.kept).toBe(0);
    running = [row(1), row(3)];
    expect((await page(of, { continue: next })).pods).toEqual(["pod-3"]);
  });

  it("never show what another list kept: neither another namespace's, nor another selector's", async () => {
    running = [row(1), row(2, "secret"), row(3, "secret")];
    const of = pager();
    const { next = "" } = await page(of, { limit: "1" }, "secret");
    expect((await page(of, { continue: next }, "default")).pods).toEqual([]);
  });

  it("keep a bounded number of lists", async () => {
    running = [row(1), row(2)];
    const of = pager();
    for (let lists = 0; lists < MAX_KEPT_SESSION_LISTS + 2; lists++) {
      nowMs += 1;
      await page(of, { limit: "1" });
    }
    expect(of.kept).toBe(MAX_KEPT_SESSION_LISTS);
  });

  it("answer 410 to a continue parameter that is too old, and 400 to one that is none", async () => {
    running = [row(1), row(2)];
    const of = pager();
    const { next = "" } = await page(of, { limit: "1" });
    nowMs += MAX_CONTINUE_AGE_MS + 1;
    await expect(page(of, { continue: next })).rejects.toMatchObject({
      status: { code: 410, reason: "Expired" },
    });
    const others = [
      "x",
      "e30",
      Buffer.from('{"v":"sluice.dev/sessions","rv":1,"at":1}').toString("base64url"),
    ];
    for (const token of others)
      await expect(page(of, { continue: token })).rejects.toMatchObject({ status: { code: 400 } });
  });
});
