import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Bandwidth, Pace } from "../../../src/net/bandwidth.ts";
import { feed } from "../../../src/net/feed.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => void vi.useRealTimers());

describe("a bound of 1,000 bytes a second", () => {
  it("lets a tenth of a second's worth through at once, and each direction has its own", () => {
    const bandwidth = new Bandwidth(1_000);
    const [one, other] = [new Pace(bandwidth), new Pace(bandwidth)];
    vi.advanceTimersByTime(1_000);
    expect([one.spend(60), one.spend(40), one.spend(50), one.spend(50)]).toEqual([0, 0, 50, 100]);
    expect(other.spend(100)).toBe(0);
    vi.advanceTimersByTime(60_000);
    expect([one.spend(100), one.spend(1)]).toEqual([0, 1]);
  });

  it("wakes who waits, not early and up to 20 ms late, with one timer that ends with them", () => {
    const bandwidth = new Bandwidth(1_000);
    const woken: number[] = [];
    for (const waitMs of [5, 100, 100, 70_000])
      bandwidth.wakeIn(waitMs, () => woken.push(performance.now() - waitMs));
    expect(vi.getTimerCount()).toBe(1);
    const startedMs = performance.now();
    vi.advanceTimersByTime(80_000);
    expect(woken).toHaveLength(4);
    for (const time of woken) {
      expect(time - startedMs).toBeGreaterThanOrEqual(0);
      expect(time - startedMs).toBeLessThanOrEqual(40);
    }
    expect(vi.getTimerCount()).toBe(0);
  });

  it("holds a source that a drained sink would wake", async () => {
    const bandwidth = new Bandwidth(1_000);
    const [source, sink] = [new PassThrough(), new PassThrough()];
    feed(source, sink, (chunk) => void sink.write(chunk), new Pace(bandwidth));
    source.write(Buffer.alloc(500));
    await vi.waitFor(() => expect(source.isPaused()).toBe(true));
    sink.emit("drain");
    expect(source.isPaused()).toBe(true);
    vi.advanceTimersByTime(600);
    expect(source.isPaused()).toBe(false);
  });
});
