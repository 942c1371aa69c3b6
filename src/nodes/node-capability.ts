import type { StreamingMode } from "../config/sections/node-streaming.ts";

/** A kubelet with this feature speaks WebSocket v5 and the tunnel itself (KEP-4006, 1.36). */
export const EXTEND_WEBSOCKETS_TO_KUBELET = "ExtendWebSocketsToKubelet";

/**
 * The WebSocket paths to a node: v5 of exec and attach, and the tunnel. They fail independently.
 */
export const WEBSOCKET_PATHS = ["command", "tunnel"] as const;
export type WebSocketPath = (typeof WEBSOCKET_PATHS)[number];

/** The node's properties that decide its path. */
export interface NodeCapability {
  /** The kubelet's own claim, which does not cover its runtime. */
  readonly declaresWebSocket: boolean;
  readonly mode: StreamingMode;
  /** Paths that failed recently and are avoided until their retry is due. */
  readonly avoidedPaths: readonly WebSocketPath[];
}

/** How a path to a node failed. A closed list, because it is a metric label. */
const PATH_FAILURES = [
  "bad-request",
  "forbidden",
  "not-found",
  "method-not-allowed",
  "upgrade-required",
  "not-implemented",
  "runtime-failed",
  "no-answer",
  "wrong-answer",
  "failed-after-upgrade",
] as const;
export type PathFailure = (typeof PATH_FAILURES)[number];
