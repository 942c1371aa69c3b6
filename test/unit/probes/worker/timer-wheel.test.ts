import { describe, expect, it } from "vitest";
import { TimerWheel } from "../../../../src/probes/worker/timer-wheel.ts";
import { ManualClock } from "../../../support/manual-clock.ts";

// The bound under test.
const WHEEL_TICK_MS = 10;

function wheelOf() {
  const clock = new ManualClock();
  const wheel = new TimerWheel(clock);
  const ran: string[] = [];
  const entry = (name: string) => wheel.entry(() => ran.push(name));
  return { clock, wheel, ran, entry };
}

describe("the timer wheel", () => {
  it("runs entries in the order of their times, however they were set", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    wheel.set(entry("b"), clock.now() + 200);
    wheel.set(entry("c"), clock.now() + 205);
    wheel.set(entry("a"), clock.now() + 40);
    clock.advance(39);
    expect(ran).toEqual([]);
    clock.advance(300);
    expect(ran).toEqual(["a", "b", "c"]);
  });

  it("runs no entry early and none later than a tick", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    wheel.set(entry("a"), clock.now() + 15);
    for (let passedMs = 1; passedMs <= 15 + WHEEL_TICK_MS; passedMs++) {
      clock.advance(1);
      if (passedMs < 15) expect(ran).toEqual([]);
    }
    expect(ran).toEqual(["a"]);
  });

  it("keeps entries that are further away than it is long", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    wheel.set(entry("far"), clock.now() + 3_600_000);
    for (let second = 0; second < 3_599; second++) clock.advance(1_000);
    expect(ran).toEqual([]);
    clock.advance(1_000);
    expect(ran).toEqual(["far"]);
  });

  it("catches up with a long sleep, once for each entry", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    for (const delayMs of [10, 5_000, 20_000, 90_000])
      wheel.set(entry(String(delayMs)), clock.now() + delayMs);
    clock.advance(60_000);
    expect(ran).toEqual(["10", "5000", "20000"]);
    clock.advance(60_000);
    expect(ran).toEqual(["10", "5000", "20000", "90000"]);
  });

  it("an entry that is taken back by an earlier one does not run; one that is set again runs once", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    const second = entry("second");
    const first = wheel.entry(() => wheel.clear(second));
    const again = entry("again");
    wheel.set(first, clock.now() + 20);
    wheel.set(second, clock.now() + 21);
    wheel.set(again, clock.now() + 30);
    wheel.set(again, clock.now() + 500);
    clock.advance(100);
    expect(ran).toEqual([]);
    clock.advance(500);
    expect(ran).toEqual(["again"]);
  });

  it("needs its clock only while there are entries, and a clock that ends runs none", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    const one = entry("one");
    expect(clock.listenerCount).toBe(0);
    wheel.set(one, clock.now() + 10);
    expect({ listeners: clock.listenerCount, size: wheel.size }).toEqual({ listeners: 1, size: 1 });
    wheel.tick(Number.POSITIVE_INFINITY);
    expect(ran).toEqual([]);
    wheel.clear(one);
    wheel.clear(one);
    expect({ listeners: clock.listenerCount, size: wheel.size }).toEqual({ listeners: 0, size: 0 });
  });

  it("time that is over is the next tick", () => {
    const { clock, wheel, ran, entry } = wheelOf();
    wheel.set(entry("late"), clock.now() - 1_000);
    clock.advance(WHEEL_TICK_MS);
    expect(ran).toEqual(["late"]);
  });

  it("10,000 entries with a period of 1 s each run once a second", () => {
    const { clock, wheel } = wheelOf();
    let runs = 0;
    for (let index = 0; index < 10_000; index++) {
      const startMs = clock.now() + (index % 1_000);
      const each = wheel.entry(() => {
        runs++;
        wheel.set(each, each.dueMs + 1_000);
      });
      wheel.set(each, startMs + 1_000);
    }
    for (let passedMs = 0; passedMs < 4_000; passedMs += WHEEL_TICK_MS) clock.advance(WHEEL_TICK_MS);
    expect(runs).toBeGreaterThanOrEqual(30_000);
    expect(runs).toBeLessThanOrEqual(31_000);
  });
});
