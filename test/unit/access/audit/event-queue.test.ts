import { expect, it } from "vitest";
import { DeliveryThrottle } from "../../../../src/access/audit/event-queue.ts";

it("lets a burst through at once and then one per interval, and the burst again after a silence", () => {
  let nowMs = 0;
  const throttle = new DeliveryThrottle({ perSecond: 10, burst: 3 }, () => nowMs);
  const turns = (count: number) => Array.from({ length: count }, () => throttle.takeTurn());
  expect(turns(5)).toEqual([0, 0, 0, 100, 200]);
  nowMs = 250;
  expect(turns(1)).toEqual([50]);
  nowMs = 10_000;
  expect(turns(4)).toEqual([0, 0, 0, 100]);
});
