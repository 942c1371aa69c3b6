import { expect, it } from "vitest";
import { CancelShares } from "../../../../src/http/upstream/http2-upstream.ts";
import { fixedBound } from "../../../support/fixed-bound.ts";

// The bound under test.
const CANCELS_PER_SECOND = 10;

const CANCELS_AT_ONCE = fixedBound("src/http/upstream/http2-upstream.ts", "CANCELS_AT_ONCE");

it("a client is past its share after so many cancels, and within it again with time", () => {
  let nowMs = 0;
  const shares = new CancelShares(() => nowMs);
  for (let cancels = 0; cancels < CANCELS_AT_ONCE; cancels += 1) {
    expect(shares.isSpent("192.0.2.1")).toBe(false);
    shares.cancelled("192.0.2.1");
  }
  expect(shares.isSpent("192.0.2.1")).toBe(true);
  expect(shares.isSpent("192.0.2.2")).toBe(false);
  nowMs += 1_000;
  expect(shares.isSpent("192.0.2.1")).toBe(false);
  for (let cancels = 0; cancels < CANCELS_PER_SECOND; cancels += 1) shares.cancelled("192.0.2.1");
  expect(shares.isSpent("192.0.2.1")).toBe(true);
});

it("clients that are many do not make it forget the last ones", () => {
  const shares = new CancelShares(() => 0);
  for (let cancels = 0; cancels < CANCELS_AT_ONCE; cancels += 1) {
    shares.cancelled("192.0.2.1");
    for (let other = 0; other < 100; other += 1) shares.cancelled(`2001:db8::${cancels}:${other}`);
  }
  expect(shares.isSpent("192.0.2.1")).toBe(true);
});
