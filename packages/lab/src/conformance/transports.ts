/** Transports of command sessions. */
export const COMMAND_TRANSPORTS = ["websocket-v5", "websocket-v4", "spdy"] as const;
/** Older protocols of command sessions, which servers may refuse. */
export const LEGACY_TRANSPORTS = ["websocket-v1", "websocket-v4-base64"] as const;
/** Port-forward transports that carry any number of connections in one session. */
export const FORWARD_TRANSPORTS = ["tunnel", "spdy-forward"] as const;

export type CommandTransport = (typeof COMMAND_TRANSPORTS | typeof LEGACY_TRANSPORTS)[number];
export type ForwardTransport = (typeof FORWARD_TRANSPORTS)[number];
export type Transport = CommandTransport | ForwardTransport;

/** A client's offer for it, best first. */
export interface TransportOffer {
  readonly transport: "websocket" | "spdy";
  readonly protocols: readonly string[];
}

export const OFFERS: Readonly<Record<Transport, TransportOffer>> = {
  "websocket-v5": { transport: "websocket", protocols: ["v5.channel.k8s.io"] },
  "websocket-v4": { transport: "websocket", protocols: ["v4.channel.k8s.io"] },
  "websocket-v1": { transport: "websocket", protocols: ["channel.k8s.io"] },
  "websocket-v4-base64": { transport: "websocket", protocols: ["v4.base64.channel.k8s.io"] },
  spdy: { transport: "spdy", protocols: ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] },
  tunnel: { transport: "websocket", protocols: ["SPDY/3.1+portforward.k8s.io"] },
  "spdy-forward": { transport: "spdy", protocols: ["portforward.k8s.io"] },
};
