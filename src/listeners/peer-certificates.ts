import type { X509Certificate } from "node:crypto";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import type { PeerCertificates } from "../access/authn/authenticator.ts";

/** More certificates than any chain has; Node reads no more from us than we ask. */
const MAX_CHAIN_CERTIFICATES = 10;

const known = new WeakMap<TLSSocket, PeerCertificates>();

/** What the client showed in the handshake of this connection; read once for each connection. */
export function peerCertificatesOf(socket: Duplex): PeerCertificates | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const before = known.get(socket);
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
  known.set(socket, certificates);
  return certificates;
}
