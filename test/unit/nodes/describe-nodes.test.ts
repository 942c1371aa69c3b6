import { describe, expect, it } from "vitest";
import { type DescribedNode, mergeNodes } from "../../../src/nodes/describe-nodes.ts";
import type { LearnedNode, LearnedPath } from "../../../src/nodes/known-nodes.ts";

const unused: LearnedPath = { successes: 0, failures: 0, lastFailure: undefined, retryInMs: 0 };

function learned(circuit: Partial<LearnedNode["circuit"]>, command: Partial<LearnedPath>): LearnedNode {
  return {
    circuit: { state: "closed", failures: 0, reason: "", retryInMs: 0, ...circuit },
    paths: { command: { ...unused, ...command }, tunnel: unused },
  };
}

function node(
  name: string,
  avoidedPaths: readonly ("command" | "tunnel")[],
  known?: LearnedNode,
): DescribedNode {
  const capability = { declaresWebSocket: true, mode: "auto", avoidedPaths } as const;
  return { name, declaredFeatures: [], modeSource: "", capability, ...(known && { learned: known }) };
}

describe("what several processes hold of the same nodes", () => {
  it("is one list, with sums and the worst of each verdict", () => {
    const open = { state: "open", failures: 3, reason: "i/o timeout", retryInMs: 4_000 } as const;
    const failed = { failures: 2, lastFailure: "forbidden", retryInMs: 9_000 } as const;
    const worked = { successes: 5, failures: 1, lastFailure: "no-answer" } as const;
    const merged = mergeNodes([
      [node("a", ["tunnel"], learned({}, worked)), node("b", [])],
      [node("a", ["command"], learned(open, failed)), node("b", [], learned({}, worked))],
      [node("a", [])],
    ]);
    expect(merged).toEqual([
      node("a", ["command", "tunnel"], {
        circuit: open,
        paths: {
          command: { successes: 5, failures: 3, lastFailure: "forbidden", retryInMs: 9_000 },
          tunnel: unused,
        },
      }),
      node("b", [], learned({}, worked)),
    ]);
  });

  it("is empty where nobody answers", () => {
    expect(mergeNodes([[], []])).toEqual([]);
  });
});
