import { describe, expect, it } from "vitest";
import { CircuitBreaker } from "../../../src/nodes/circuit-breaker.ts";

const SETTINGS = { failures: 3, retryMs: 5_000, maxRetryMs: 15_000 };

function opened(nowMs = 0): CircuitBreaker {
  const breaker = new CircuitBreaker(SETTINGS);
  for (let failure = 0; failure < 3; failure++) breaker.failed(nowMs, "i/o timeout", false);
  return breaker;
}

describe("circuit breaker", () => {
  it("opens after so many failures in a row, not before", () => {
    const breaker = new CircuitBreaker(SETTINGS);
    breaker.failed(0, "x", false);
    breaker.failed(0, "x", false);
    expect(breaker.admit(0)).toEqual({ kind: "dial" });
    breaker.succeeded();
    breaker.failed(0, "x", false);
    breaker.failed(0, "x", false);
    expect(breaker.state(0)).toBe("closed");
    breaker.failed(0, "y", false);
    expect(breaker.state(0)).toBe("open");
    expect(breaker.admit(1_000)).toEqual({ kind: "refused", reason: "y", retryInMs: 4_000 });
  });

  it("lets one trial through when the pause is over, and nobody else", () => {
    const breaker = opened();
    expect(breaker.state(5_000)).toBe("half-open");
    expect(breaker.admit(5_000)).toEqual({ kind: "trial" });
    expect(breaker.admit(5_000)).toMatchObject({ kind: "refused", retryInMs: 0 });
    breaker.succeeded();
    expect(breaker.admit(5_000)).toEqual({ kind: "dial" });
    expect(breaker.failures).toBe(0);
  });

  it("waits twice as long after each trial that failed, up to its bound", () => {
    const breaker = opened();
    const pauses: number[] = [];
    for (let nowMs = 5_000, trial = 0; trial < 4; trial++) {
      expect(breaker.admit(nowMs)).toEqual({ kind: "trial" });
      breaker.failed(nowMs, "x", true);
      pauses.push(breaker.retryInMs(nowMs));
      nowMs += breaker.retryInMs(nowMs);
    }
    expect(pauses).toEqual([10_000, 15_000, 15_000, 15_000]);
  });

  it("tries a node that refuses connections every second, however often it did", () => {
    const breaker = new CircuitBreaker(SETTINGS);
    for (let failure = 0; failure < 3; failure++) breaker.failed(0, "connection refused", false, true);
    for (let nowMs = 0; nowMs < 10_000; nowMs += 1_000) {
      expect(breaker.admit(nowMs)).toMatchObject({ kind: "refused", retryInMs: 1_000 });
      expect(breaker.admit(nowMs + 1_000)).toEqual({ kind: "trial" });
      breaker.failed(nowMs + 1_000, "connection refused", true, true);
    }
    expect(breaker.admit(11_000)).toEqual({ kind: "trial" });
    breaker.failed(11_000, "i/o timeout", true);
    expect(breaker.retryInMs(11_000)).toBe(10_000);
  });

  it("does not count dials that began before it opened towards a longer pause", () => {
    const breaker = opened();
    for (let late = 0; late < 50; late++) breaker.failed(4_000, "x", false);
    expect(breaker.retryInMs(4_000)).toBe(1_000);
  });

  it("gives the trial to somebody else when its client left", () => {
    const breaker = opened();
    expect(breaker.admit(5_000)).toEqual({ kind: "trial" });
    breaker.abandoned();
    expect(breaker.admit(5_000)).toEqual({ kind: "trial" });
  });

  it("believes probes: a dead node is not dialled, a live one is at once", () => {
    const breaker = new CircuitBreaker(SETTINGS);
    breaker.declaredDead(0, "probe failed");
    expect(breaker.admit(1_000)).toMatchObject({ kind: "refused", reason: "probe failed" });
    breaker.succeeded();
    expect(breaker.admit(1_000)).toEqual({ kind: "dial" });
  });
});
