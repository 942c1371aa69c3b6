import { StatusError } from "@sluice/client/internal/api/status";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { Node } from "../api/objects.ts";
import { type LocateOptions, type NodeEndpoint, nodeEndpointOf } from "../cluster/locate.ts";
import type { NodeStreaming } from "../config/sections/kubelet.ts";
import type { CircuitState } from "./circuit-breaker.ts";
import type { KnownNodes, LearnedNode, LearnedPath } from "./known-nodes.ts";
import { declaresWebSocket, modeOf, type NodeCapability, WEBSOCKET_PATHS } from "./node-capability.ts";

const SEVERITY: Readonly<Record<CircuitState, number>> = { closed: 0, "half-open": 1, open: 2 };

/**
 * Everything that decides how sessions reach a node, for `/debug/nodes` and `sluice explain
 * node/NAME`.
 */
export interface DescribedNode {
  readonly name: string;
  /** The dialled host:port; absent if the node has no usable address. */
  readonly address?: string;
  /** The reason why `address` is absent. */
  readonly problem?: string;
  readonly declaredFeatures: readonly string[];
  /** The source of `capability.mode`. */
  readonly modeSource: string;
  readonly capability: NodeCapability;
  /** Absent if no recent session or probe used the node. */
  readonly learned?: LearnedNode;
}

interface DescribeOptions {
  readonly locate: LocateOptions;
  readonly streaming: NodeStreaming;
  /** If absent, only the configuration and the declarations are described. */
  readonly known?: Pick<KnownNodes, "capabilityOf" | "learnedOf"> | undefined;
}

export function describeNode(node: Node, { locate, streaming, known }: DescribeOptions): DescribedNode {
  const place = placeOf(node, locate);
  const endpoint = "endpoint" in place ? place.endpoint : withoutAddress(node);
  const { mode, source } = modeOf(endpoint, streaming);
  const learned = known?.learnedOf(endpoint);
  const declared = { declaresWebSocket: declaresWebSocket(endpoint), mode, avoidedPaths: [] };
  return {
    name: endpoint.name,
    ...("endpoint" in place
      ? { address: joinHostPort(place.endpoint.host, place.endpoint.port) }
      : { problem: place.problem }),
    declaredFeatures: endpoint.declaredFeatures,
    modeSource: source,
    capability: known?.capabilityOf(endpoint) ?? declared,
    ...(learned && { learned }),
  };
}

function placeOf(node: Node, locate: LocateOptions): { endpoint: NodeEndpoint } | { problem: string } {
  try {
    return { endpoint: nodeEndpointOf(node, locate) };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { problem: error.message };
  }
}

function withoutAddress({ metadata, spec, status, ...rest }: Node): NodeEndpoint {
  const anywhere = [{ type: "InternalIP", address: "" }];
  const node = { ...rest, metadata, ...(spec && { spec }), status: { ...status, addresses: anywhere } };
  return nodeEndpointOf(node, { preferredAddressTypes: ["InternalIP"], defaultKubeletPort: 0 });
}

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
