import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readOutputRead } from "../../../src/peers/peer-protocol.ts";
import {
  RESIZE,
  type SessionObserver,
  STDERR,
  STDOUT,
} from "../../../src/sessions/observers/session-observer.ts";
import type { Screen } from "../../../src/sessions/screens/screens.ts";
import {
  LEFT,
  OUTPUT_WAIT_MS,
  type OutputPage,
  readOutputAnswer,
  SessionOutputs,
} from "../../../src/sessions/session-outputs.ts";
import type { RunningSession } from "../../../src/sessions/sessions.ts";

// The bounds under test.
const MAX_VIEWERS_PER_SESSION = 10;
const MAX_VIEWED_SESSIONS = 100;
const MAX_KEPT_OUTPUT = 256 * 1024;
const MAX_OUTPUT_PAGE = 64 * 1024;
const MAX_VIEWER_SILENCE_MS = 5_000;
const MAX_SCREEN_WAIT_MS = 5_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A session that a test prints through. */
class PrintingSession {
  readonly observers = new Set<SessionObserver>();
  readonly running: RunningSession;

  constructor(subresource = "exec", details: object | undefined = {}) {
    this.running = {
      isOver: false,
      info: { subresource, details },
      observe: (observer: SessionObserver) => {
        this.observers.add(observer);
        return () => this.observers.delete(observer);
      },
    } as unknown as RunningSession;
  }

  print(text: string | Uint8Array, stream = STDOUT): void {
    for (const observer of this.observers) observer.onData?.(stream, "node", Buffer.from(text));
  }

  resize(text: string): void {
    for (const observer of this.observers) observer.onData?.(RESIZE, "client", Buffer.from(text));
  }

  end(): void {
    for (const observer of this.observers) void observer.onEnd?.({} as never);
  }
}

function outputsOf(sessions: Record<string, PrintingSession>): SessionOutputs {
  return new SessionOutputs(() => [{ find: (id: string) => sessions[id]?.running }]);
}

const textOf = ({ events }: OutputPage): string => events.map(([, , text]) => text).join("");

async function page(outputs: SessionOutputs, after = -1, viewer = "v", id = "a"): Promise<OutputPage> {
  const reading = outputs.read({ id, viewer, after });
  await vi.advanceTimersByTimeAsync(OUTPUT_WAIT_MS);
  const answer = await reading;
  if (typeof answer === "string") throw new Error(answer);
  return answer;
}

it("viewers that leave at once make room for others at once", async () => {
  const session = new PrintingSession();
  const outputs = new SessionOutputs(() => [{ find: () => session.running }]);
  session.print("shown");
  const viewers = Array.from({ length: MAX_VIEWERS_PER_SESSION }, (_, index) => `v${index}`);
  const read = (viewer: string, after = -1) => outputs.read({ id: "a", viewer, after });
  const pages = Promise.all(viewers.map((viewer) => read(viewer)));
  await vi.advanceTimersByTimeAsync(OUTPUT_WAIT_MS);
  await pages;
  expect(await read("more")).toBe("too-many");
  expect(await Promise.all(viewers.map((viewer) => read(viewer, LEFT)))).toEqual(viewers.map(() => "gone"));
  expect([outputs.viewers, session.observers.size]).toEqual([0, 0]);
  const page = read("more");
  await vi.advanceTimersByTimeAsync(OUTPUT_WAIT_MS);
  expect(await page).toMatchObject({ isOver: false });
  expect(await read("stranger", LEFT)).toBe("unknown");
});

describe("a viewed session", () => {
  it("is observed only while it has viewers: one that does not read is gone", async () => {
    const session = new PrintingSession();
    const outputs = outputsOf({ a: session });
    expect(session.observers.size).toBe(0);
    const first = await page(outputs);
    expect([session.observers.size, outputs.viewers]).toEqual([1, 1]);
    await vi.advanceTimersByTimeAsync(MAX_VIEWER_SILENCE_MS - OUTPUT_WAIT_MS - 1_500);
    await page(outputs, first.next);
    expect(outputs.viewers).toBe(1);
    await vi.advanceTimersByTimeAsync(2 * MAX_VIEWER_SILENCE_MS);
    expect([session.observers.size, outputs.viewers, vi.getTimerCount()]).toEqual([0, 0, 0]);
    // Another observation counts on, so that the viewer hears that output is missing.
    expect((await page(outputs, first.next)).from).toBeGreaterThan(first.next);
  });

  it("shows output of both streams and sizes, with characters that parts cut", async () => {
    const session = new PrintingSession();
    const outputs = outputsOf({ a: session });
    const { next } = await page(outputs);
    const [before, behind] = [Buffer.from("é").subarray(0, 1), Buffer.from("é").subarray(1)];
    session.print(before);
    session.print("err", STDERR);
    session.print(behind);
    session.resize('{"Width":120,"Height":40}');
    session.print("input", { type: "stdin" });
    const seen = await page(outputs, next);
    expect(seen.events.map(([, code, text]) => [code, text])).toEqual([
      ["o", "err"],
      ["o", "é"],
      ["r", "120x40"],
    ]);
    session.end();
    expect(await page(outputs, seen.next)).toMatchObject({ events: [], isOver: true });
  });

  it("waits for a while for output, and answers at once when it comes", async () => {
    const session = new PrintingSession();
    const outputs = outputsOf({ a: session });
    const { next } = await page(outputs);
    let isAnswered = false;
    const reading = outputs.read({ id: "a", viewer: "v", after: next }).then((answer) => {
      isAnswered = true;
      return answer as OutputPage;
    });
    await vi.advanceTimersByTimeAsync(OUTPUT_WAIT_MS - 1);
    expect(isAnswered).toBe(false);
    session.print("now");
    expect(textOf(await reading)).toBe("now");
  });

  it("gives a slow viewer what is kept: it misses the oldest, and the owner waits for nothing", async () => {
    const session = new PrintingSession();
    const outputs = outputsOf({ a: session });
    const { next } = await page(outputs);
    const line = "x".repeat(1_000);
    for (let count = 0; count < 1_000; count += 1) session.print(line);
    const seen = await page(outputs, next);
    expect(seen.from).toBeGreaterThan(next);
    let kept = 0;
    for (let after = seen.from; ; ) {
      const { events, next: last } = await page(outputs, after);
      if (events.length === 0) break;
      kept += events.length * 1_032;
      after = last;
    }
    expect(kept).toBeLessThanOrEqual(MAX_KEPT_OUTPUT);
    expect(kept).toBeGreaterThan(MAX_KEPT_OUTPUT / 2);
  });

  it("comes in pages, each event once and in order", async () => {
    const session = new PrintingSession();
    const outputs = outputsOf({ a: session });
    const { next } = await page(outputs);
    const printed = Array.from({ length: 3_000 }, (_, index) => `${index},`);
    for (const each of printed) session.print(each);
    const [first, second] = [await page(outputs, next), await page(outputs, next, "other")];
    expect(first).toEqual(second);
    let seen = "";
    let pages = 0;
    for (let after = next; ; pages += 1) {
      const each = await page(outputs, after);
      if (each.events.length === 0) break;
      expect(JSON.stringify(each.events.map(([, , text]) => text)).length).toBeLessThan(2 * MAX_OUTPUT_PAGE);
      seen += textOf(each);
      after = each.next;
    }
    expect([seen, pages]).toEqual([printed.join(""), 2]);
  });

  it("has so many viewers, and no more", async () => {
    const outputs = outputsOf({ a: new PrintingSession() });
    for (let viewer = 0; viewer < MAX_VIEWERS_PER_SESSION; viewer += 1) await page(outputs, -1, `${viewer}`);
    expect(await outputs.read({ id: "a", viewer: "more", after: -1 })).toBe("too-many");
  });

  it("is one of so many sessions", async () => {
    const ids = Array.from({ length: MAX_VIEWED_SESSIONS + 1 }, (_, index) => `s${index}`);
    const outputs = outputsOf(Object.fromEntries(ids.map((id) => [id, new PrintingSession()])));
    const reads = ids.map((id) => outputs.read({ id, viewer: "v", after: -1 }));
    await vi.advanceTimersByTimeAsync(OUTPUT_WAIT_MS);
    const answers = await Promise.all(reads);
    expect(answers.filter((answer) => answer === "too-many")).toHaveLength(1);
  });

  it("is none of a port-forward, of bytes that are not decoded, or of an unknown id", async () => {
    const sessions = { a: new PrintingSession("portforward"), b: new PrintingSession("exec", undefined) };
    (sessions.b.running as { info: object }).info = { subresource: "exec" };
    const outputs = outputsOf(sessions);
    const read = (id: string) => outputs.read({ id, viewer: "v", after: -1 });
    expect([await read("a"), await read("b"), await read("c")]).toEqual([
      "no-output",
      "no-output",
      "unknown",
    ]);
  });
});

describe("a viewer of a terminal", () => {
  const shown: Screen = { text: "SCREEN", cols: 100, rows: 30, isComplete: true };
  /** Screens that a test draws. */
  class DrawnScreens {
    isMissing = false;
    open = new Uint8Array(0);
    readonly asked: ((screen: Screen | undefined) => void)[] = [];

    screenOf(): Promise<Screen | undefined> {
      return new Promise((resolve) => this.asked.push(resolve));
    }

    openCharacterOf(): Uint8Array {
      return this.open;
    }
  }

  function terminal() {
    const session = new PrintingSession("exec", { tty: true });
    const screens = new DrawnScreens();
    const outputs = new SessionOutputs(() => [{ find: () => session.running }], screens);
    return { session, screens, outputs };
  }

  it("begins with the screen, and goes on with exactly what followed it", async () => {
    const { session, screens, outputs } = terminal();
    screens.open = Buffer.from("é").subarray(0, 1);
    const reading = page(outputs);
    session.print(Buffer.from("é").subarray(1));
    session.print(" then");
    screens.asked[0]?.(shown);
    const first = await reading;
    expect(first.events.map(([, code, text]) => [code, text])).toEqual([
      ["r", "100x30"],
      ["o", "SCREEN"],
    ]);
    const second = await page(outputs, first.next);
    expect([second.from - first.next, textOf(second)]).toEqual([0, "é then"]);
  });

  it("shares the screen with those that wait for it, and asks again until it is drawn", async () => {
    const { session, screens, outputs } = terminal();
    for (const viewer of ["v", "w"])
      expect(await page(outputs, -1, viewer)).toMatchObject({ next: -1, events: [] });
    expect(screens.asked).toHaveLength(1);
    session.print("behind");
    screens.asked[0]?.({ ...shown, isComplete: false });
    const first = await page(outputs);
    expect(first.events.map(([, code]) => code)).toEqual(["r", "m", "o"]);
    expect(textOf(await page(outputs, first.next))).toBe("behind");
  });

  it("that is slow gets a fresh screen, and loses no later output", async () => {
    const { session, screens, outputs } = terminal();
    const reading = page(outputs);
    screens.asked[0]?.(shown);
    const { next } = await reading;
    for (let count = 0; count < 1_000; count += 1) session.print("x".repeat(1_000));
    const again = page(outputs, next);
    screens.asked[1]?.({ ...shown, text: "FRESH" });
    const fresh = await again;
    expect([fresh.from > next, textOf(fresh)]).toEqual([true, "100x30FRESH"]);
    session.print("later");
    expect(textOf(await page(outputs, fresh.next))).toBe("later");
  });

  it("sees what follows, with a note, where no screens are kept", async () => {
    const session = new PrintingSession("exec", { tty: true });
    const outputs = new SessionOutputs(() => [{ find: () => session.running }]);
    const first = await page(outputs);
    const note = "this gateway keeps no current screens: what comes from now on follows";
    expect(first.events.map(([, code, text]) => [code, text])).toEqual([["m", note]]);
    session.print("more");
    expect(textOf(await page(outputs, first.next))).toBe("more");
  });

  it("sees what follows, with a note, if the screen is not known, or not drawn in time", async () => {
    const { session, screens, outputs } = terminal();
    const reading = page(outputs);
    screens.isMissing = true;
    session.print("now");
    screens.asked[0]?.(undefined);
    const { events, next } = await reading;
    expect(events.map(([, code, text]) => [code, text])).toEqual([
      ["m", "the current screen needs @xterm/headless, which the gateway does not have"],
      ["o", "now"],
    ]);
    expect(readOutputAnswer(JSON.parse(JSON.stringify(await reading)))).toEqual(await reading);
    session.print(" more");
    expect(textOf(await page(outputs, next))).toBe(" more");
    const slow = terminal();
    let last = await page(slow.outputs);
    for (let waited = 0; last.next < 0; waited += OUTPUT_WAIT_MS) {
      expect(waited).toBeLessThanOrEqual(MAX_SCREEN_WAIT_MS);
      last = await page(slow.outputs);
    }
    expect(last.events.map(([, , text]) => text)).toEqual([
      "the current screen is not known: what comes from now on follows",
    ]);
  });
});

it.each([
  undefined,
  null,
  {},
  [],
  "other",
  { from: 1, next: 2, events: [[1, "x", "y"]], isOver: false },
  { from: 1, next: 2, events: [null], isOver: false },
  { from: 1, next: 2, events: [[Number.POSITIVE_INFINITY, "o", "y"]] },
  { from: 1, next: 2, events: [[1, "r", "wide"]] },
  { from: 1.5, next: 2, events: [[1, "o", "y"]] },
  { from: 2, next: 1, events: [] },
  { from: 1, next: 9, events: [[1, "o", "y"]] },
  { from: 1, next: 2 ** 60, events: [[1, "o", "y"]] },
  { from: 1, next: 2, events: { length: 1 } },
])("%j is no answer of another process", (value) => {
  expect(() => readOutputAnswer(value)).toThrow("the answer is not a page of output");
});

it.each([
  ["v", "7", 7],
  ["v", undefined, -1],
  ["", "7", undefined],
  ["x".repeat(65), "7", undefined],
  [["v"], "7", undefined],
  ["v", "-2", LEFT],
  ["v", "-3", undefined],
  ["v", "many", undefined],
  ["v", "1e999", undefined],
])("a viewer %j that has %j is asked for behind %j", (viewer, after, number) => {
  expect(readOutputRead("id", viewer, after)?.after).toBe(number);
});
