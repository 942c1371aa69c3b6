import { describe, expect, it } from "vitest";
import { READ_AHEAD_BYTES, ReadAhead, totalReadAhead } from "../../../src/net/read-ahead.ts";
import { InputHold } from "../../../src/sessions/carriers/input-hold.ts";

// The bounds under test.
const MAX_READ_AHEAD_BYTES_PER_USER = 64 * 1024 * 1024;
const MAX_TOTAL_READ_AHEAD_BYTES = 256 * 1024 * 1024;
const MAX_INPUT_HOLD_MS = 1_000;
const MAX_TERMINAL_HOLD_MS = 200;
const BULK_OUTPUT_BYTES = 512 * 1024;
const MAX_HELD_PIECE_BYTES = 8 * 1024;

const KEY = Buffer.from("k");

/** `passed`: what went on to the node. `isHeld`: the client is not read. */
function started(isTerminal = false) {
  const state = { passed: [] as string[], hasResult: false, isHeld: false, nowMs: 0 };
  const ahead = new ReadAhead("", () => state.nowMs);
  const client = {
    hold: () => {
      state.isHeld = true;
    },
    release: () => {
      state.isHeld = false;
    },
  };
  const hold = new InputHold(ahead, client, isTerminal, () => state.hasResult);
  const type = (text: string | Buffer): void =>
    hold.pass((bytes) => void state.passed.push(Buffer.from(bytes).toString()), Buffer.from(text));
  return { state, ahead, hold, type };
}

describe("input behind much output", () => {
  it("passes at once where the output is an answer's size", () => {
    const { state, hold, type } = started();
    hold.heard(BULK_OUTPUT_BYTES - 1);
    type("a");
    hold.heard(BULK_OUTPUT_BYTES - 1);
    type("b");
    expect(state.passed).toEqual(["a", "b"]);
  });

  it("waits, as a copy, until the node is silent, and then passes in order", async () => {
    const { state, hold, type } = started();
    hold.heard(BULK_OUTPUT_BYTES);
    const memory = Buffer.from("first");
    hold.pass((bytes) => void state.passed.push(Buffer.from(bytes).toString()), memory);
    memory.fill("x");
    type("second");
    expect([state.passed, state.isHeld]).toEqual([[], true]);
    await expect.poll(() => state.passed).toEqual(["first", "second"]);
    expect(state.isHeld).toBe(false);
  });

  it("is dropped when the node's result comes meanwhile", () => {
    const { state, hold, type } = started();
    hold.heard(BULK_OUTPUT_BYTES);
    type("late");
    state.hasResult = true;
    hold.heard(1);
    hold.flush();
    expect([state.passed, state.isHeld]).toEqual([[], false]);
  });

  it("passes when so much was read that no more can have been queued", () => {
    const { state, hold, type } = started();
    hold.heard(BULK_OUTPUT_BYTES);
    type("^C");
    hold.heard(READ_AHEAD_BYTES - 1);
    expect(state.passed).toEqual([]);
    hold.heard(1);
    expect(state.passed).toEqual(["^C"]);
  });

  it.each([
    ["a second", false, MAX_INPUT_HOLD_MS],
    ["a fifth of a second in a terminal", true, MAX_TERMINAL_HOLD_MS],
  ])("passes after %s of output without an end", async (_, isTerminal, holdMs) => {
    const { state, hold, type } = started(isTerminal);
    hold.heard(BULK_OUTPUT_BYTES);
    const startedMs = performance.now();
    type("^C");
    await expect
      .poll(
        () => {
          hold.heard(1);
          return state.passed;
        },
        { interval: 20, timeout: 10_000 },
      )
      .toEqual(["^C"]);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(holdMs - 1);
  });

  it("passes at once where it is a stream, which would be slow otherwise", () => {
    const { state, hold, type } = started();
    hold.heard(BULK_OUTPUT_BYTES);
    type(Buffer.alloc(MAX_HELD_PIECE_BYTES + 1));
    hold.heard(BULK_OUTPUT_BYTES);
    type("more");
    expect(state.passed.length).toBe(2);
  });

  it("waits where the client has not taken its output for a while", () => {
    const { state, ahead, type } = started();
    ahead.filled(1);
    type("a");
    state.nowMs = 10;
    type("b");
    expect([state.passed, state.isHeld]).toEqual([["a"], true]);
  });
});

describe("reading ahead", () => {
  it("stops at its bound for each session, and begins again when the client has taken it", () => {
    const ahead = new ReadAhead("user");
    expect(ahead.mayRead).toBe(false);
    ahead.start();
    ahead.filled(KEY.byteLength);
    ahead.filled(READ_AHEAD_BYTES - 1);
    expect([ahead.mayRead, totalReadAhead()]).toEqual([true, READ_AHEAD_BYTES - 1]);
    ahead.filled(1);
    expect(ahead.mayRead).toBe(false);
    ahead.emptied();
    expect([ahead.mayRead, totalReadAhead()]).toEqual([true, 0]);
    ahead.stop();
    expect(ahead.mayRead).toBe(false);
  });

  /** A source of the user that reads all that it may, in chunks of 64 KiB. */
  function greedy(user: string): ReadAhead {
    const ahead = new ReadAhead(user);
    ahead.start();
    ahead.filled(1);
    while (ahead.mayRead) ahead.filled(64 * 1024);
    return ahead;
  }

  it("leaves other users their part, however many sessions one user has", () => {
    const held = Array.from({ length: 200 }, () => greedy("hostile"));
    expect(totalReadAhead()).toBeLessThanOrEqual(MAX_READ_AHEAD_BYTES_PER_USER + 200 * 64 * 1024);
    const before = totalReadAhead();
    const honest = greedy("honest");
    expect(totalReadAhead() - before).toBeGreaterThan(READ_AHEAD_BYTES / 2);
    for (const each of [...held, honest]) each.emptied();
    expect(totalReadAhead()).toBe(0);
  });

  it("stops at the bound of the process, and ten users together leave an eleventh some of it", () => {
    const held = Array.from({ length: 10 }, (_, index) =>
      Array.from({ length: 30 }, () => greedy(`hostile ${index}`)),
    ).flat();
    expect(totalReadAhead()).toBeLessThan(MAX_TOTAL_READ_AHEAD_BYTES);
    const before = totalReadAhead();
    const honest = greedy("honest");
    expect(totalReadAhead() - before).toBeGreaterThan(512 * 1024);
    for (const each of [...held, honest]) each.emptied();
  });
});
