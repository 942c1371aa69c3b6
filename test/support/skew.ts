/** The three API servers and three kubelets of KEP-4006's "Version Skew within the Control Plane and Nodes", as configurations. */
export interface SkewedApiServer {
  readonly name: string;
  readonly featureGates: Readonly<Record<string, boolean>>;
  /** `kubelet.streaming.mode` */
  readonly mode: "auto" | "websocket";
  /**
   * True if it ends or passes on WebSockets on purpose; an older one forwards what it does not
   * know.
   */
  readonly speaksWebSocket: boolean;
  /** True if it passes WebSockets through to nodes that declare support. */
  readonly asksNodes: boolean;
}

export interface SkewedNode {
  readonly name: string;
  readonly title: string;
  readonly speaksWebSocket: boolean;
  readonly declares: boolean;
}

export const skewedApiServers: readonly SkewedApiServer[] = [
  {
    name: "1. SPDY only (before 1.29)",
    featureGates: {
      TranslateStreamCloseWebsocketRequests: false,
      PortForwardWebsockets: false,
      ExtendWebSocketsToKubelet: false,
    },
    mode: "auto",
    speaksWebSocket: false,
    asksNodes: false,
  },
  {
    name: "2. WebSocket at the API server (1.29 to 1.35)",
    featureGates: { ExtendWebSocketsToKubelet: false },
    mode: "auto",
    speaksWebSocket: true,
    asksNodes: false,
  },
  {
    name: "3. WebSocket to the kubelet (1.36 and newer)",
    featureGates: {},
    mode: "auto",
    speaksWebSocket: true,
    asksNodes: true,
  },
];

/**
 * Not in the KEP: configured to assume that all nodes accept WebSocket, and corrected by those that
 * do not.
 */
export const toldApiServer: SkewedApiServer = {
  name: "3., with `kubelet.streaming.mode: websocket`",
  featureGates: {},
  mode: "websocket",
  speaksWebSocket: true,
  asksNodes: true,
};

export const skewedNodes: readonly SkewedNode[] = [
  { name: "node-spdy", title: "1. SPDY only", speaksWebSocket: false, declares: false },
  {
    name: "node-declares",
    title: "2. takes WebSocket and declares it",
    speaksWebSocket: true,
    declares: true,
  },
  {
    name: "node-stable",
    title: "3. takes WebSocket, no longer declares it",
    speaksWebSocket: true,
    declares: false,
  },
];

/**
 * The path that a client's requests must take. `webSocket`: the client tries WebSocket first.
 * `plan`: how WebSocket ends at an API server. `isFirst`: nothing is known of this path yet.
 * `tunnelRefusal`: the refusal of a node without the tunnel.
 */
export function expectedJourney(
  api: SkewedApiServer,
  node: SkewedNode,
  webSocket: boolean,
  plan: "translate" | "tunnel",
  isFirst: boolean,
  tunnelRefusal: 400 | 403,
): string {
  if (!webSocket) return "SPDY pass-through";
  if (!api.speaksWebSocket) {
    if (node.speaksWebSocket) return "WebSocket pass-through";
    // Runtimes refuse v5.
    return `WebSocket refused (${plan === "tunnel" ? tunnelRefusal : 403}), then SPDY pass-through`;
  }
  if (!api.asksNodes || (api.mode === "auto" && !node.declares)) return `WebSocket ${plan}`;
  if (node.speaksWebSocket) return "WebSocket pass-through";
  return `WebSocket ${plan}${isFirst ? ", the node having refused WebSocket" : ""}`;
}
