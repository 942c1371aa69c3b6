import type { StreamingMode } from "../config/sections/node-streaming.ts";

/** The node feature by which a kubelet says that it speaks WebSocket v5 and the tunnel itself (KEP-4006, 1.36). */
export const EXTEND_WEBSOCKETS_TO_KUBELET = "ExtendWebSocketsToKubelet";

/** The ways in which WebSocket passes through to a node: v5 of exec and attach, and the tunnel. They fail apart from each other. */
export const WEBSOCKET_PATHS = ["command", "tunnel"] as const;
export type WebSocketPath = (typeof WEBSOCKET_PATHS)[number];

/** What is held of a node when a path is chosen. */
export interface NodeCapability {
  /** The kubelet's claim about itself; of the runtime behind it, it says nothing. */
  readonly declaresWebSocket: boolean;
  readonly mode: StreamingMode;
  /** Paths that failed lately and are left out for now. */
  readonly avoidedPaths: readonly WebSocketPath[];
}

/** How a path to a node failed. A closed list: it is a metric label. */
export const PATH_FAILURES = [
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
