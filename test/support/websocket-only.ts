import type { NodeStreaming } from "../../src/config/sections/node-streaming.ts";

/** Every node stands behind a hop that passes nothing but WebSocket. */
export const websocketOnly: NodeStreaming = {
  mode: "websocket-only",
  nodes: new Map(),
  retryFailedPathMs: 1_000,
  maxRetryFailedPathMs: 1_000,
};
