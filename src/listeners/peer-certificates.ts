import type { X509Certificate } from "node:crypto";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { PeerCertificates } from "../access/authn/authenticator.ts";
import type { CertificateAuthority } from "../access/authn/certificate-authority.ts";

/** More certificates than any chain has; Node reads no more from us than we ask. */
const MAX_CHAIN_CERTIFICATES = 10;

/** On the socket itself: an HTTP/2 session shows requests a proxy of it, which hands properties on. */
const PEER = Symbol("peer certificates");
interface Known {
  [PEER]?: PeerCertificates;
}

/**
 * Judges a connection again by authorities that took the place of those of its handshake: where none of them has issued the client's
 * certificate, it counts as unverified from the next request on.
 */
export function rejudgePeer(socket: TLSSocket, authorities: readonly CertificateAuthority[]): void {
  const peer = peerCertificatesOf(socket);
  if (!peer?.isVerified || authorities.some((authority) => authority.hasIssued(peer))) return;
  (socket as Known)[PEER] = { ...peer, isVerified: false };
}

/** What the client showed in the handshake of this connection; read once for each connection. */
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
