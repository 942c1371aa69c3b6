import { expect, it, onTestFinished } from "vitest";
import { Reflector } from "../../../src/kubernetes/reflector.ts";
import { Backoff } from "../../../src/net/backoff.ts";

// The bound under test.
const MAX_LISTED_OBJECTS = 500_000;

const PAGE = Array.from({ length: MAX_LISTED_OBJECTS / 10 }, () => ({}));

/** Follows a list whose pages are as given; its first end, and what became of it. */
async function follow(pageAt: (index: number) => { continue?: string; items?: readonly object[] }) {
  let pages = 0;
  const replaced: number[] = [];
  let settle: (end: readonly [string, string]) => void = () => {};
  const ended = new Promise<readonly [how: string, problem: string]>((resolve) => {
    settle = resolve;
  });
  const reflector = new Reflector<object>({
    client: {
      json: async () => {
        const { continue: next, items = [] } = pageAt(pages);
        pages += 1;
        return { kind: "PodList", metadata: { resourceVersion: "1", continue: next }, items };
      },
      open: async () => {
        throw new Error("no watch");
      },
    },
    path: "/api/v1/pods",
    sink: { replace: (objects) => void replaced.push(objects.length), upsert: () => {}, remove: () => {} },
    read: (value) => value as object,
    events: {
      listed: () => {},
      watching: () => {},
      event: () => {},
      badObject: () => {},
      ended: (how, problem) => settle([how, problem]),
    },
    backoff: new Backoff(),
  });
  onTestFinished(() => reflector.stop());
  reflector.start();
  const end = await ended;
  return { end, pages, replaced };
}

const ENDLESS = ["malformed", "the pages of the API server's list do not end"];

it("a list whose pages go on for ever is given up at the bound", async () => {
  const { end, pages, replaced } = await follow((index) => ({ continue: `page ${index}`, items: PAGE }));
  expect(end).toEqual(ENDLESS);
  expect([pages, replaced]).toEqual([10, []]);
});

it("a list that continues where it continued before is given up at once", async () => {
  const { end, pages, replaced } = await follow(() => ({ continue: "again" }));
  expect(end).toEqual(ENDLESS);
  expect([pages, replaced]).toEqual([2, []]);
});

it("a list of empty pages whose places alternate is given up after a thousand", async () => {
  const { end, pages, replaced } = await follow((index) => ({ continue: index % 2 === 0 ? "a" : "b" }));
  expect(end).toEqual(ENDLESS);
  expect([pages, replaced]).toEqual([1_000, []]);
});

it("a list of exactly the bound is taken", async () => {
  const { end, replaced } = await follow((index) => ({
    ...(index < 9 && { continue: `page ${index}` }),
    items: PAGE,
  }));
  expect(end).not.toEqual(ENDLESS);
  expect(replaced).toEqual([MAX_LISTED_OBJECTS]);
});
