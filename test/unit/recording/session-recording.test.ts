import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { SessionRecording } from "../../../src/recording/session-recording.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function started() {
  const cuts: string[] = [];
  const held = new Set<string>();
  const hold = (side: string) => {
    held.add(side);
    return () => void held.delete(side);
  };
  const seconds: number[] = [];
  const recording = new SessionRecording(
    { discard: () => {} } as never,
    {
      rule: { recordOnFailure: "refuse" },
      bounds: { maxOutputBytes: 1, maxHoldMs: 2_000 },
      metrics: { held: (each: number) => void seconds.push(each) },
    } as never,
  );
  recording.begin({ hold, cut: (_cause: string, message: string) => void cuts.push(message) } as never);
  return { recording, cuts, held, seconds };
}

it("a hold ends the session after maxHold, even if an earlier one ended in time", () => {
  const { recording, cuts, held, seconds } = started();
  recording.hold();
  expect([...held]).toEqual(["node", "client"]);
  vi.advanceTimersByTime(1_500);
  recording.release();
  expect(held.size).toBe(0);
  recording.hold();
  vi.advanceTimersByTime(1_999);
  expect(cuts).toEqual([]);
  expect(held.size).toBe(2);
  vi.advanceTimersByTime(1);
  expect(cuts).toEqual(["the recording was not written for 2 s"]);
  expect(held.size).toBe(0);
  expect(seconds).toEqual([1.5, 2]);
});

it("a session that is not held is not ended, and no timer outlives the session", async () => {
  const { recording, cuts } = started();
  recording.hold();
  recording.release();
  vi.advanceTimersByTime(10_000);
  expect(cuts).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  recording.hold();
  await recording.end({ cause: "completed", exitCode: 0, countedBytes: 0 }, 0);
  expect(vi.getTimerCount()).toBe(0);
});
