import { StatusError } from "@sluice/client/internal/api/status";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { Node } from "../api/objects.ts";
import { type LocateOptions, type NodeEndpoint, nodeEndpointOf } from "../cluster/locate.ts";
import type { NodeStreaming } from "../config/sections/node-streaming.ts";
import type { KnownNodes, LearnedNode } from "./known-nodes.ts";
import type { NodeCapability } from "./node-capability.ts";
import { declaresWebSocket, modeOf } from "./node-capability.ts";

/**
 * Everything that decides how sessions reach a node, for `/debug/nodes` and `sluice explain
 * node/NAME`.
 */
export interface DescribedNode {
  readonly name: string;
  /** host:port as dialled; absent if the node has no usable address. */
  readonly address?: string;
  /** The reason why `address` is absent. */
  readonly problem?: string;
  readonly declaredFeatures: readonly string[];
  /** The source of `capability.mode`. */
  readonly modeSource: string;
  readonly capability: NodeCapability;
  /** Absent if no recent session or probe concerned the node. */
  readonly learned?: LearnedNode;
}

interface DescribeOptions {
  readonly locate: LocateOptions;
  readonly streaming: NodeStreaming;
  /** Absent to describe only the configuration and the declarations. */
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
