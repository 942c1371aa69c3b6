/** Where a connection that a proxy passes on came from. */
export interface ProxyPeer {
  /** IPv4 or IPv6 as text, without a zone. */
  readonly address: string;
  readonly port: number;
}

export interface ProxyHeader {
  /** Undefined: the proxy's own connection (LOCAL), or one whose peer has no IP address. */
  readonly peer: ProxyPeer | undefined;
  /** The connection's own bytes begin behind so many. */
  readonly byteLength: number;
}
