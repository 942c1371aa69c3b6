import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MAX_UNANSWERED_MS, outputStream } from "../../../src/session-api/output-stream.ts";
import { streamingSessionOf } from "../../../src/session-api/streaming-session.ts";
import { LEFT, type OutputAnswer, type OutputPage } from "../../../src/sessions/session-outputs.ts";
import { listedSession } from "../../support/listed-session.ts";

const SESSION = streamingSessionOf({ ...listedSession(1), container: "main" }, 1);
const T = 1_795_464_000_000;

beforeEach(() => {
  vi.useFakeTimers({ now: T });
});
afterEach(() => {
  vi.useRealTimers();
});

const pageOf = (from: number, events: OutputPage["events"], isOver = false): OutputPage => ({
  from,
  next: from + events.length,
  events,
  isOver,
});

const noEnd = () => () => {};

async function linesOf(first: OutputPage, answers: OutputAnswer[]) {
  const asked: number[] = [];
  const read = async (after: number): Promise<OutputAnswer> => {
    asked.push(after);
    return answers.shift() ?? "unreachable";
  };
  const lines: unknown[] = [];
  const reading = (async () => {
    for await (const part of outputStream(SESSION, first, { read, follow: noEnd })) {
      const texts = Buffer.from(part).toString().trimEnd().split("\n");
      lines.push(...texts.map((text) => JSON.parse(text) as unknown));
    }
  })();
  await vi.advanceTimersByTimeAsync(2 * MAX_UNANSWERED_MS);
  await reading;
  return { lines, asked };
}

it("is an asciicast with the size, times between events, and a mark where output is missing", async () => {
  const first = pageOf(100, [
    [T, "r", "132x43"],
    [T + 20, "o", "$ "],
  ]);
  const { lines, asked } = await linesOf(first, [
    pageOf(102, []),
    pageOf(110, [[T + 1_520, "o", "ls\r\n"]]),
    pageOf(111, [], true),
  ]);
  expect(lines).toEqual([
    {
      version: 3,
      term: { cols: 132, rows: 43 },
      timestamp: T / 1_000,
      title: "default/pod-1/main by ana",
    },
    [0, "r", "132x43"],
    [0.02, "o", "$ "],
    [1.5, "m", "output is missing here"],
    [0, "o", "ls\r\n"],
    [expect.any(Number), "m", "the session is over"],
  ]);
  expect(asked).toEqual([102, 102, 111]);
});

it("has no negative time, and true ones again, behind a clock that was set back", async () => {
  const HOUR_MS = 3_600_000;
  const first = pageOf(1, [
    [T, "o", "a"],
    [T + 1_000, "o", "b"],
    [T + 2_000 - HOUR_MS, "o", "c"],
    [T + 2_500 - HOUR_MS, "o", "d"],
    [T + 3_000 + HOUR_MS, "o", "e"],
  ]);
  const { lines } = await linesOf(first, [pageOf(6, [], true)]);
  expect(lines.slice(1, 6)).toEqual([
    [0, "o", "a"],
    [1, "o", "b"],
    [0, "o", "c"],
    [0.5, "o", "d"],
    [7_200.5, "o", "e"],
  ]);
});

it("goes on behind a pause of the session's process, and ends if it gives no answer for too long", async () => {
  const { lines } = await linesOf(pageOf(1, []), [
    "unreachable",
    "unreachable",
    pageOf(1, [[T + 1_000, "o", "again"]]),
  ]);
  expect(lines.slice(1)).toEqual([
    [1, "o", "again"],
    [expect.any(Number), "m", "the session's process does not answer"],
  ]);
});

it.each([
  ["unknown", "the session is over"],
  ["gone", "the view was lost"],
  ["too-many", "the view was lost"],
  ["no-output", "the view was lost"],
] as const)("after the answer %s its last event is: %s", async (answer, last) => {
  const { lines } = await linesOf(pageOf(1, []), [answer]);
  expect(lines.at(-1)).toEqual([0, "m", last]);
});

/** A view of a session that prints nothing, and its readers. */
function silentView() {
  const reads: (() => void)[] = [];
  const asked: number[] = [];
  const followers = new Set<() => void>();
  const view = outputStream(SESSION, pageOf(1, []), {
    read: (after) =>
      new Promise((resolve) => {
        asked.push(after);
        reads.push(() => resolve(pageOf(1, [])));
      }),
    follow: (end) => {
      followers.add(end);
      return () => followers.delete(end);
    },
  });
  return { view, reads, asked, followers };
}

it("is released as soon as its viewer leaves, though the session is silent", async () => {
  const { view, reads, asked, followers } = silentView();
  await view.next();
  const next = view.next();
  await vi.advanceTimersByTimeAsync(0);
  expect([reads.length, followers.size]).toEqual([1, 1]);
  await view.return?.();
  expect([await next, followers.size]).toEqual([{ done: true, value: undefined }, 0]);
  reads[0]?.();
  await vi.advanceTimersByTimeAsync(MAX_UNANSWERED_MS);
  // Its session's process knows that it has left.
  expect([asked.slice(1), vi.getTimerCount()]).toEqual([[LEFT], 0]);
});

it("ends at once when the viewer may no longer see it", async () => {
  const { view, followers } = silentView();
  await view.next();
  const next = view.next();
  await vi.advanceTimersByTimeAsync(0);
  for (const end of followers) end();
  const { value } = await next;
  expect(JSON.parse(String(value))).toEqual([0, "m", "you may no longer view this session"]);
  expect([await view.next(), followers.size]).toEqual([{ done: true, value: undefined }, 0]);
});
