import { constants } from "node:crypto";
import type { Server } from "node:net";
import type { SecureContextOptions, TLSSocket, TlsOptions } from "node:tls";
import { cipherOptionsOf, type TlsSettings } from "../config/sections/tls-settings.ts";

/** Certificate and key of a listener as PEM texts, and whose client certificates it asks for. */
export interface ServingTls extends Partial<TlsSettings> {
  readonly cert: string;
  readonly key: string;
  /** Every authority that a client's certificate may come from; empty: none is asked for. */
  readonly clientAuthorities: readonly string[];
  /** What tickets are encrypted with, where several processes resume each other's sessions; absent: this process' own. */
  readonly ticketKeys?: Buffer | undefined;
}

/**
 * A listener's TLS. As in kube-apiserver, a handshake succeeds without a client certificate or with a bad one: the caller may have a
 * token, and a 401 says more than a broken connection.
 */
export function tlsOptionsOf(tls: ServingTls, handshakeTimeoutMs: number, offersHttp2 = false): TlsOptions {
  return {
    ...secureContextOf(tls),
    ALPNProtocols: offersHttp2 ? ["h2", "http/1.1"] : ["http/1.1"],
    handshakeTimeout: handshakeTimeoutMs,
    requestCert: tls.clientAuthorities.length > 0,
    rejectUnauthorized: false,
  };
}

/** The part of it that can be replaced while the listener runs. */
export function secureContextOf({
  cert,
  key,
  clientAuthorities,
  ticketKeys,
  ...settings
}: ServingTls): SecureContextOptions {
  return {
    cert,
    key,
    ...cipherOptionsOf(settings),
    ...(ticketKeys && { ticketKeys }),
    ...(clientAuthorities.length > 0 && {
      ca: [...clientAuthorities],
      // An intermediate may be given as an authority, as Go's verifier takes it.
      allowPartialTrustChain: true,
      // A resumed session brings back the certificate without its chain and without a new verification.
      secureOptions: constants.SSL_OP_NO_TICKET,
    }),
  };
}

/** Node's HTTPS server takes every connection for HTTP/1.1; those that chose HTTP/2 go to `acceptHttp2`. */
export function serveByAlpn(server: Server, acceptHttp2: (socket: TLSSocket) => void): void {
  serveThrough(server, (socket, serveHttp1) => {
    if (socket.alpnProtocol === "h2") acceptHttp2(socket);
    else serveHttp1();
  });
}

/** Connections that are not accepted are closed before a byte of theirs is taken for a request. */
export function serveAccepted(server: Server, accepts: (socket: TLSSocket) => boolean): void {
  serveThrough(server, (socket, serve) => {
    if (accepts(socket)) serve();
    else socket.destroy();
  });
}

function serveThrough(server: Server, take: (socket: TLSSocket, serve: () => void) => void): void {
  const listeners = server.listeners("secureConnection") as ((socket: TLSSocket) => void)[];
  server.removeAllListeners("secureConnection");
  server.on("secureConnection", (socket: TLSSocket) => {
    take(socket, () => {
      for (const listener of listeners) listener.call(server, socket);
    });
  });
}
