/** The SPDY protocol of port-forwarding, sent as X-Stream-Protocol-Version. */
export const PORT_FORWARD_PROTOCOL = "portforward.k8s.io";

const TUNNEL_PREFIX = "SPDY/3.1+";
const KUBERNETES_SUFFIX = ".k8s.io";
/** KEP-4006's text calls the tunnel this; the released code never did. */
const KEP_ALIAS = "v2.portforward.k8s.io";

export interface TunnelOffer {
  /** Exactly as the client wrote it; the response must repeat it. */
  readonly subprotocol: string;
  /** The protocol inside the tunnel. */
  readonly spdyProtocol: string;
}

/** The WebSocket subprotocols in `offered` that request a SPDY tunnel, in the client's order. */
export function tunnelOffers(offered: readonly string[]): TunnelOffer[] {
  const offers: TunnelOffer[] = [];
  for (const subprotocol of offered) {
    if (subprotocol === KEP_ALIAS) offers.push({ subprotocol, spdyProtocol: PORT_FORWARD_PROTOCOL });
    else if (isShippedTunnelName(subprotocol)) {
      offers.push({ subprotocol, spdyProtocol: subprotocol.slice(TUNNEL_PREFIX.length) });
    }
  }
  return offers;
}

export function tunnelSubprotocolOf(spdyProtocol: string): string {
  return TUNNEL_PREFIX + spdyProtocol;
}

/** Kubernetes' API servers and kubelets accept this name for a tunnel: `SPDY/3.1+`, a protocol, `.k8s.io`. */
export function isShippedTunnelName(subprotocol: string): boolean {
  return subprotocol.startsWith(TUNNEL_PREFIX) && subprotocol.endsWith(KUBERNETES_SUFFIX);
}
