import type { NodeEndpoint } from "../cluster/locate.ts";
import {
  isStreamingMode,
  type NodeStreaming,
  STREAMING_ANNOTATION,
  type StreamingMode,
} from "../config/sections/node-streaming.ts";
import { EXTEND_WEBSOCKETS_TO_KUBELET } from "./node-capability.ts";

/** A node's mode and its source. */
interface ChosenMode {
  readonly mode: StreamingMode;
  readonly source: string;
}

/**
 * Precedence: the configuration for this node, the node's annotation, the configuration for all
 * nodes.
 */
export function modeOf({ name, streaming }: NodeEndpoint, { mode, nodes }: NodeStreaming): ChosenMode {
  const configured = nodes.get(name);
  if (configured !== undefined) return { mode: configured, source: "configuration of this node" };
  if (isStreamingMode(streaming)) return { mode: streaming, source: `annotation ${STREAMING_ANNOTATION}` };
  // A wrong annotation must not end a node's sessions.
  const ignored = streaming === undefined ? "" : `, annotation ${STREAMING_ANNOTATION} has no known value`;
  return { mode, source: `configuration of all nodes${ignored}` };
}

export function declaresWebSocket({ declaredFeatures }: NodeEndpoint): boolean {
  return declaredFeatures.includes(EXTEND_WEBSOCKETS_TO_KUBELET);
}
