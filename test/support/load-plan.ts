import type { LoadPlan } from "../../src/load/index.ts";

/** Two sessions of exec that echo. */
export function loadPlan(changed: Partial<LoadPlan> = {}): LoadPlan {
  return {
    ...{ kind: "exec", protocol: "ws-v5", direction: "echo", verification: "echo", path: "/exec", port: 0 },
    ...{ sessions: 2, arrivalsPerSecond: 0, count: 4, rampMs: 0, durationMs: 20_000 },
    ...{ messages: 20, messageBytes: 1_000, messagesPerSecond: 0, timeoutMs: 10_000, seed: 1 },
    ...changed,
  };
}
