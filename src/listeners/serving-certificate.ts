import type { X509Certificate } from "node:crypto";
import type { Server } from "node:http";
import { Server as HttpsServer } from "node:https";
import type { Duplex } from "node:stream";
import { createSecureContext, TLSSocket } from "node:tls";
import { keyPairOf } from "@sluice/client/internal/config/key-pair";
import { readNamedFile } from "@sluice/client/internal/config/named-file-text";
import type { PeerCertificates } from "../access/authn/authenticator.ts";
import { CertificateAuthority } from "../access/authn/certificate-authority.ts";
import type { WatchedAuthority } from "../access/authn/component.ts";
import type { ListenerTls } from "../config/sections/tls-settings.ts";
import { FollowedFiles, type ReadFile } from "../net/followed-files.ts";
import type { Logger } from "../observability/logger.ts";
import { type ServingTls, secureContextOf } from "./serving-tls.ts";

/**
 * Certificates read from a client's chain, more than any real chain has. Past it the rest is
 * ignored.
 */
const MAX_CHAIN_CERTIFICATES = 10;

/**
 * Stored on the socket: an HTTP/2 session gives requests a proxy of the socket, which forwards
 * properties.
 */
const PEER = Symbol("peer certificates");

/** Throws if a file cannot be read, if certificate and key do not match, or if OpenSSL rejects them. */
export async function readServingTls(
  files: ListenerTls,
  authorities: readonly Pick<WatchedAuthority, "file">[],
  ticketKeys?: Buffer | undefined,
  read: ReadFile = readNamedFile,
): Promise<ServingTls> {
  const [cert = "", key = "", ...clientAuthorities] = await Promise.all(
    [files.certFile, files.keyFile, ...authorities.map(({ file }) => file)].map((file) => read(file)),
  );
  keyPairOf(cert, key);
  const { cipherSuites, minVersion } = files;
  const tls: ServingTls = {
    ...{ cert, key, clientAuthorities, ticketKeys },
    ...(cipherSuites && { cipherSuites }),
    ...(minVersion && { minVersion }),
  };
  createSecureContext(secureContextOf(tls));
  return tls;
}

/**
 * Applies new TLS files to the server, and checks its open connections against them, for
 * `watchServingTls`. The server is not listening yet.
 */
export function replaceTlsOf(server: Server): (tls: ServingTls) => void {
  if (!(server instanceof HttpsServer)) return () => {};
  const open = new Set<TLSSocket>();
  server.on("secureConnection", (socket: TLSSocket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return (tls) => {
    server.setSecureContext(secureContextOf(tls));
    const authorities = tls.clientAuthorities.map((pem) => new CertificateAuthority(pem));
    if (authorities.length === 0) return;
    for (const socket of open) rejudgePeer(socket, authorities);
    server.closeIdleConnections();
  };
}

interface WatchedTls {
  /** Reads the files again. Never rejects. */
  reload(): Promise<void>;
  stop(): void;
}

interface WatchedTlsOptions {
  readonly files: ListenerTls;
  /** The listener's current TLS settings. */
  readonly current: Pick<ServingTls, "cert" | "key" | "clientAuthorities">;
  readonly authorities: readonly WatchedAuthority[];
  readonly logger: Logger;
  readonly ticketKeys?: Buffer | undefined;
  /** Called with the certificate chain served now, and with each new one. */
  readonly onServed: (cert: string) => void;
}

/**
 * Reloads a listener's certificate, key and client authorities when their files change; new handshakes
 * use them. Invalid files are logged, and the old contents stay.
 */
export function watchServingTls(
  replaceTls: (tls: ServingTls) => void,
  { files, current, authorities, logger, ticketKeys, onServed }: WatchedTlsOptions,
): WatchedTls {
  const paths = [files.certFile, files.keyFile, ...authorities.map(({ file }) => file)];
  const texts = [current.cert, current.key, ...current.clientAuthorities];
  onServed(current.cert);
  return new FollowedFiles<ServingTls>(
    {
      what: "the serving certificate",
      fields: { certFile: files.certFile },
      read: (read) => readServingTls(files, authorities, ticketKeys, read),
      changed: (tls) => {
        for (const [index, { authority }] of authorities.entries()) {
          authority.replace(tls.clientAuthorities[index] ?? "");
        }
        replaceTls(tls);
        onServed(tls.cert);
      },
      logger,
    },
    new Map(paths.map((name, index) => [name, texts[index] ?? ""])),
  );
}

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
