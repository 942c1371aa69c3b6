/** How a command's session travels. */
export const COMMAND_TRANSPORTS = ["websocket-v5", "websocket-v4", "spdy"] as const;
/** How a port-forward session travels that carries any number of connections. */
export const FORWARD_TRANSPORTS = ["tunnel", "spdy-forward"] as const;

export type CommandTransport = (typeof COMMAND_TRANSPORTS)[number];
export type ForwardTransport = (typeof FORWARD_TRANSPORTS)[number];
export type Transport = CommandTransport | ForwardTransport;

/** What a client offers for it, best first. */
export interface TransportOffer {
  readonly transport: "websocket" | "spdy";
  readonly protocols: readonly string[];
}

export const OFFERS: Readonly<Record<Transport, TransportOffer>> = {
  "websocket-v5": { transport: "websocket", protocols: ["v5.channel.k8s.io"] },
  "websocket-v4": { transport: "websocket", protocols: ["v4.channel.k8s.io"] },
  spdy: { transport: "spdy", protocols: ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] },
  tunnel: { transport: "websocket", protocols: ["SPDY/3.1+portforward.k8s.io"] },
  "spdy-forward": { transport: "spdy", protocols: ["portforward.k8s.io"] },
};
