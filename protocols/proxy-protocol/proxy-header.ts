/** The longest line of version 1, with its CRLF (section 2.1). Past it the connection is closed. */
export const MAX_PROXY_LINE_BYTES = 107;

/**
 * A header of version 2 with its TLVs; a certificate in one takes 4 KiB, and the length field
 * allows 65,551. Past it the connection is closed.
 */
export const MAX_PROXY_HEADER_BYTES = 16 * 1024;

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
