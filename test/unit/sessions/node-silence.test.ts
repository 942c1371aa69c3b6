import { describe, expect, it } from "vitest";
import { NodeSilence } from "../../../packages/client/src/sessions/node-silence.ts";

// The bounds under test.
const NODE_SILENCE_MS = 10_000;
const MAX_SILENCE_STEP_MS = 2_000;

/** Ticks each second until the node counts as quiet; returns how many seconds that took. */
function secondsUntilQuiet(silence: NodeSilence, fromMs: number): number {
  for (let seconds = 1; seconds < 1_000; seconds++) {
    if (silence.isQuiet(fromMs + 1_000 * seconds, false)) return seconds;
  }
  throw new Error("never quiet");
}

describe("a node's silence", () => {
  it(`lasts ${NODE_SILENCE_MS} ms without a byte`, () => {
    const silence = new NodeSilence(0);
    expect(secondsUntilQuiet(silence, 0)).toBe(NODE_SILENCE_MS / 1_000);
    expect(silence.isQuiet(NODE_SILENCE_MS + 1_000, false)).toBe(true);
    silence.heard();
    expect(silence.isQuiet(NODE_SILENCE_MS + 2_000, false)).toBe(false);
    expect(secondsUntilQuiet(silence, NODE_SILENCE_MS + 2_000)).toBe(NODE_SILENCE_MS / 1_000);
  });

  it(`grows by at most ${MAX_SILENCE_STEP_MS} ms for a tick that came late: nothing was read meanwhile`, () => {
    const silence = new NodeSilence(0);
    expect(silence.isQuiet(60_000, false)).toBe(false);
    expect(secondsUntilQuiet(silence, 60_000)).toBe((NODE_SILENCE_MS - MAX_SILENCE_STEP_MS) / 1_000);
  });

  it("must last as long as the node was held up before, once", () => {
    const silence = new NodeSilence(0);
    for (let ms = 1_000; ms <= 45_000; ms += 1_000) expect(silence.isQuiet(ms, true)).toBe(false);
    silence.heard();
    expect(silence.isQuiet(46_000, false)).toBe(false);
    expect(secondsUntilQuiet(silence, 46_000)).toBe(45);
    silence.heard();
    expect(silence.isQuiet(92_000, false)).toBe(false);
    expect(secondsUntilQuiet(silence, 92_000)).toBe(NODE_SILENCE_MS / 1_000);
  });
});
