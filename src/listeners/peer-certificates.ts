import type { X509Certificate } from "node:crypto";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { PeerCertificates } from "../access/authn/authenticator.ts";
import type { CertificateAuthority } from "../access/authn/certificate-authority.ts";

/**
 * Certificates of a client's chain that are read, more than any chain has. Past it the rest is
 * ignored.
 */
const MAX_CHAIN_CERTIFICATES = 10;

/**
 * Stored on the socket: an HTTP/2 session gives requests a proxy of the socket, which forwards
 * properties.
 */
const PEER = Symbol("peer certificates");
interface Known {
  [PEER]?: PeerCertificates;
}

/**
 * Verifies a connection again after its listener's authorities changed: if none of them issued the
 * client's certificate, it counts as unverified from the next request on.
 */
export function rejudgePeer(socket: TLSSocket, authorities: readonly CertificateAuthority[]): void {
  const peer = peerCertificatesOf(socket);
  if (!peer?.isVerified || authorities.some((authority) => authority.hasIssued(peer))) return;
  (socket as Known)[PEER] = { ...peer, isVerified: false };
}

/** The client's certificates from this connection's handshake, read once. */
export function peerCertificatesOf(socket: Duplex): PeerCertificates | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const before = (socket as Known)[PEER];
  if (before !== undefined) return before;
  const leaf = socket.getPeerX509Certificate();
  if (leaf === undefined) return undefined;
  const intermediates: X509Certificate[] = [];
  let next = leaf.issuerCertificate;
  while (next !== undefined && intermediates.length < MAX_CHAIN_CERTIFICATES) {
    intermediates.push(next);
    next = next.issuerCertificate;
  }
  const certificates = { leaf, intermediates, isVerified: socket.authorized };
  (socket as Known)[PEER] = certificates;
  return certificates;
}
