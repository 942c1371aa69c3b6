/** The SPDY protocol of port-forwarding: value of X-Stream-Protocol-Version. */
export const PORT_FORWARD_PROTOCOL = "portforward.k8s.io";

const TUNNEL_PREFIX = "SPDY/3.1+";
const KUBERNETES_SUFFIX = ".k8s.io";
/** KEP-4006's text calls the tunnel this; the code that shipped never did. */
const KEP_ALIAS = "v2.portforward.k8s.io";

export interface TunnelOffer {
  /** As the client wrote it: the answer must repeat exactly this. */
  readonly subprotocol: string;
  /** What the tunnelled connection speaks. */
  readonly spdyProtocol: string;
}

/** The WebSocket subprotocols among `offered` that ask for a SPDY tunnel, in the client's order. */
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

/** A name that Kubernetes' API servers and kubelets take for a tunnel: `SPDY/3.1+`, a protocol, `.k8s.io`. */
export function isShippedTunnelName(subprotocol: string): boolean {
  return subprotocol.startsWith(TUNNEL_PREFIX) && subprotocol.endsWith(KUBERNETES_SUFFIX);
}
