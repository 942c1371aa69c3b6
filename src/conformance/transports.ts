/** How a command's session travels. */
export const COMMAND_TRANSPORTS = ["websocket-v5", "websocket-v4", "spdy"] as const;

export type CommandTransport = (typeof COMMAND_TRANSPORTS)[number];

/** What a client offers for it, best first. */
export interface TransportOffer {
  readonly transport: "websocket" | "spdy";
  readonly protocols: readonly string[];
}

export const COMMAND_OFFERS: Readonly<Record<CommandTransport, TransportOffer>> = {
  "websocket-v5": { transport: "websocket", protocols: ["v5.channel.k8s.io"] },
  "websocket-v4": { transport: "websocket", protocols: ["v4.channel.k8s.io"] },
  spdy: { transport: "spdy", protocols: ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] },
};
