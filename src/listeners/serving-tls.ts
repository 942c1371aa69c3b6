import { constants } from "node:crypto";
import type { Server } from "node:net";
import type { SecureContextOptions, TLSSocket, TlsOptions } from "node:tls";
import { cipherOptionsOf, type TlsSettings } from "../config/sections/tls-settings.ts";

/** A listener's certificate and key as PEM, and the authorities for client certificates. */
export interface ServingTls extends Partial<TlsSettings> {
  readonly cert: string;
  readonly key: string;
  /** Every authority that may have issued a client's certificate; empty: no certificate is requested. */
  readonly clientAuthorities: readonly string[];
  /**
   * Encrypts session tickets if several processes resume each other's TLS sessions; absent: this
   * process's own keys.
   */
  readonly ticketKeys?: Buffer | undefined;
}

/**
 * A listener's TLS. As in kube-apiserver, a handshake succeeds without a client certificate or with a
 * bad one: the client may have a token, and a 401 says more than a broken connection.
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

/** The settings that can be replaced while the listener runs. */
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
      // Like Go's verifier, accepts an intermediate certificate as an authority.
      allowPartialTrustChain: true,
      // A resumed session restores the certificate without its chain and without verifying it again.
      secureOptions: constants.SSL_OP_NO_TICKET,
    }),
  };
}

/**
 * Node's HTTPS server treats every connection as HTTP/1.1, so those that chose HTTP/2 go to
 * `acceptHttp2`.
 */
export function serveByAlpn(server: Server, acceptHttp2: (socket: TLSSocket) => void): void {
  serveThrough(server, (socket, serveHttp1) => {
    if (socket.alpnProtocol === "h2") acceptHttp2(socket);
    else serveHttp1();
  });
}

/** Closes connections that were not admitted, before any of their bytes are parsed as a request. */
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
