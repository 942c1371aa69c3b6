import { expect, it } from "vitest";
import { RestartDelay } from "../../../src/app/runtime/worker-pool.ts";

// The bound under test.
const SETTLED_MS = 60_000;

it("a worker is started again at once, then later and later while it keeps dying, and at once after a long life", () => {
  const delay = new RestartDelay();
  const afterShortLives = (count: number) => Array.from({ length: count }, () => delay.nextBackoff(10));
  expect(afterShortLives(5)).toEqual([0, 100, 200, 400, 800]);
  expect(afterShortLives(20).at(-1)).toBe(30_000);
  expect(delay.nextBackoff(SETTLED_MS)).toBe(0);
  expect(afterShortLives(1)).toEqual([100]);
});
