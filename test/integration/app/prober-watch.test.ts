import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  MAX_SILENT_BEATS,
  PROBER_BEAT_MS,
  ProberWatchdog,
  type Watched,
} from "../../../src/app/runtime/prober-watchdog.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

class FakeProber implements Watched {
  beats = 0;
  /** Answers at once, when `settle` is called, or never. */
  isPrompt = true;
  readonly #waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];

  beat(): Promise<void> {
    this.beats++;
    if (this.isPrompt) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
    });
  }

  settle(error?: Error): void {
    for (const { resolve, reject } of this.#waiting.splice(0))
      error === undefined ? resolve() : reject(error);
  }
}

function start() {
  const hung: FakeProber[] = [];
  const watch = new ProberWatchdog<FakeProber>({ onHung: (prober) => hung.push(prober) });
  return { hung, watch };
}

const pass = (beats: number) => vi.advanceTimersByTimeAsync(beats * PROBER_BEAT_MS);

it("whoever answers is asked again and again", async () => {
  const { hung, watch } = start();
  const prober = new FakeProber();
  watch.watch(prober);
  await pass(3 * MAX_SILENT_BEATS);
  expect([prober.beats, hung]).toEqual([3 * MAX_SILENT_BEATS, []]);
});

it("whoever is silent for half a minute has hung, once; a beat less is none", async () => {
  const { hung, watch } = start();
  const prober = new FakeProber();
  prober.isPrompt = false;
  watch.watch(prober);
  // Asked at the first beat, silent since.
  await pass(MAX_SILENT_BEATS);
  expect([prober.beats, hung]).toEqual([1, []]);
  await pass(1);
  expect(hung).toEqual([prober]);
  await pass(3 * MAX_SILENT_BEATS);
  expect(hung).toEqual([prober]);
});

it("an answer that is late counts as one, and silence begins anew", async () => {
  const { hung, watch } = start();
  const prober = new FakeProber();
  prober.isPrompt = false;
  watch.watch(prober);
  await pass(MAX_SILENT_BEATS);
  prober.settle();
  await pass(MAX_SILENT_BEATS);
  expect([prober.beats, hung]).toEqual([2, []]);
  await pass(1);
  expect(hung).toEqual([prober]);
});

it("one that is gone is not asked any more, and neither is one after whom another is watched", async () => {
  const { hung, watch } = start();
  const [gone, former, prober] = [new FakeProber(), new FakeProber(), new FakeProber()];
  gone.isPrompt = false;
  watch.watch(gone);
  await pass(1);
  gone.settle(new Error("the other process is gone"));
  await pass(MAX_SILENT_BEATS);
  watch.watch(former);
  former.isPrompt = false;
  await pass(1);
  watch.watch(prober);
  await pass(2 * MAX_SILENT_BEATS);
  expect([gone.beats, former.beats, prober.beats, hung]).toEqual([1, 1, 2 * MAX_SILENT_BEATS, []]);
  watch.stop();
  await pass(1);
  expect(prober.beats).toBe(2 * MAX_SILENT_BEATS);
});
