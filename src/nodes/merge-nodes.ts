import type { CircuitState } from "./circuit-breaker.ts";
import type { DescribedNode } from "./describe-nodes.ts";
import type { LearnedNode, LearnedPath } from "./known-nodes.ts";
import { WEBSOCKET_PATHS } from "./node-capability.ts";

const SEVERITY: Readonly<Record<CircuitState, number>> = { closed: 0, "half-open": 1, open: 2 };

/**
 * Merges the node records of several processes: adds successes and failures, and keeps the worst
 * verdicts.
 */
export function mergeNodes(lists: readonly (readonly DescribedNode[])[]): DescribedNode[] {
  const merged = new Map<string, DescribedNode>();
  for (const node of lists.flat()) {
    const known = merged.get(node.name);
    merged.set(node.name, known === undefined ? node : mergeTwo(known, node));
  }
  return [...merged.values()];
}

function mergeTwo(one: DescribedNode, other: DescribedNode): DescribedNode {
  const avoided = [...one.capability.avoidedPaths, ...other.capability.avoidedPaths];
  const learned = mergeLearned(one.learned, other.learned);
  return {
    ...one,
    capability: { ...one.capability, avoidedPaths: WEBSOCKET_PATHS.filter((path) => avoided.includes(path)) },
    ...(learned && { learned }),
  };
}

function mergeLearned(one: LearnedNode | undefined, other: LearnedNode | undefined): LearnedNode | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const isOtherWorse = SEVERITY[other.circuit.state] > SEVERITY[one.circuit.state];
  const circuit = isOtherWorse ? other.circuit : one.circuit;
  return {
    circuit,
    paths: {
      command: mergePath(one.paths.command, other.paths.command),
      tunnel: mergePath(one.paths.tunnel, other.paths.tunnel),
    },
  };
}

function mergePath(one: LearnedPath, other: LearnedPath): LearnedPath {
  return {
    successes: one.successes + other.successes,
    failures: one.failures + other.failures,
    lastFailure:
      one.retryInMs >= other.retryInMs ? (one.lastFailure ?? other.lastFailure) : other.lastFailure,
    retryInMs: Math.max(one.retryInMs, other.retryInMs),
  };
}
