/** The origin of a proxied connection. */
export interface ProxyPeer {
  /** IPv4 or IPv6 as text, without a zone. */
  readonly address: string;
  readonly port: number;
}

export interface ProxyHeader {
  /** Undefined for the proxy's own connection (LOCAL), and for a peer without an IP address. */
  readonly peer: ProxyPeer | undefined;
  /** The length of the header; the connection's own bytes follow. */
  readonly byteLength: number;
}
