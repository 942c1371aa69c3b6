import { expect, it } from "vitest";
import { Backoff } from "../../../src/net/backoff.ts";

it("waits longer each time, up to a bound, spread, and no shorter than asked", () => {
  let chance = 0.5;
  const backoff = new Backoff({ firstMs: 100, maxMs: 300, random: () => chance });
  expect([backoff.next(), backoff.next(), backoff.next(), backoff.next()]).toEqual([100, 200, 300, 300]);
  backoff.reset();
  chance = 0;
  expect(backoff.next()).toBe(50);
  chance = 1;
  expect(backoff.next()).toBe(300);
  expect(backoff.next(1_000)).toBe(1_450);
  expect(backoff.next(10)).toBe(20);
});
