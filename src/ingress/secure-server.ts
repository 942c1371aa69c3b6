import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import { type ClientHello, ClientHelloReader } from "../../protocols/tls/index.ts";
import { cipherOptionsOf, type TlsSettings } from "../config/sections/tls-settings.ts";
import { answerPlainHttp } from "../http/downstream/plain-http.ts";
import { judgeByFirstBytes } from "../listeners/first-bytes.ts";
import type { CertificateAndKey } from "./certificates.ts";

export interface SecureServerOptions {
  /** What is served to clients that name no server, or one that `certificatesFor` knows nothing for. */
  readonly defaultTls: CertificateAndKey;
  /** The certificates of a server name, each with another kind of key: a client gets one that it can verify. Empty: none is known. */
  readonly certificatesFor: (serverName: string) => readonly CertificateAndKey[];
  /** Milliseconds for the ClientHello, and as many for the rest of the handshake. */
  readonly handshakeMs: number;
  /** What tickets are encrypted with; absent: keys of our own. */
  readonly ticketKeys?: Buffer | undefined;
  /** Absent: as by default. */
  readonly settings?: TlsSettings | undefined;
  readonly onSecure: (socket: TLSSocket) => void;
}

export interface SecureServer {
  /** Takes the connections. Not yet listening. */
  readonly server: Server;
  /** Handshakes from now on get this one. It must be one that OpenSSL can use. */
  setDefault(defaultTls: CertificateAndKey): void;
}

/** A ClientHello has some hundred bytes, or two thousand with keys that withstand quantum computers. A longer one is served the default. */
const MAX_CLIENT_HELLO_BYTES = 16 * 1024;
const TICKET_KEY_BYTES = 48;
/** `curl --http1.0` offers the last alone, and a handshake without a common protocol fails (RFC 7301 section 3.2). */
const ALPN_PROTOCOLS = ["h2", "http/1.1", "http/1.0"];

/**
 * TLS by server name, read before the handshake: each list of certificates has its own TLS server. With `SNICallback` Node up to 24
 * adds one certificate to the default ones, which OpenSSL may prefer.
 */
export function createSecureServer(options: SecureServerOptions): SecureServer {
  const { handshakeMs, certificatesFor, onSecure } = options;
  // The same for all: a session can be resumed although its name's Secret was replaced.
  const ticketKeys = options.ticketKeys ?? randomBytes(TICKET_KEY_BYTES);
  let fallback = [options.defaultTls];
  const servers = new ServersByCertificates((certificates) => {
    const server = createTlsServer({
      cert: certificates.map(({ cert }) => cert),
      key: certificates.map(({ key }) => key),
      ALPNProtocols: ALPN_PROTOCOLS,
      ...cipherOptionsOf(options.settings ?? {}),
      handshakeTimeout: handshakeMs,
      ticketKeys,
    });
    answerPlainHttp(server);
    return server.on("secureConnection", onSecure);
  });
  const server = createServer({ noDelay: true }, (socket) => {
    judgeByFirstBytes(socket, {
      timeoutMs: handshakeMs,
      judge: nameReader(),
      decide: ({ serverName = "" }) => {
        const found = certificatesFor(serverName);
        servers.of(found.length === 0 ? fallback : found).emit("connection", socket);
      },
    });
  });
  return {
    server,
    setDefault(defaultTls) {
      fallback = [defaultTls];
    },
  };
}

/** For one connection. */
function nameReader(): (seen: Buffer, newest: Buffer) => ClientHello | undefined {
  const reader = new ClientHelloReader();
  return (seen, newest) =>
    seen.byteLength > MAX_CLIENT_HELLO_BYTES ? { serverName: undefined } : reader.push(newest);
}

/** Servers as they are needed, one for each list of certificates, for as long as those are held elsewhere. */
class ServersByCertificates {
  readonly #create: (certificates: readonly CertificateAndKey[]) => TlsServer;
  readonly #root: ServerNode = { longer: new WeakMap() };

  constructor(create: (certificates: readonly CertificateAndKey[]) => TlsServer) {
    this.#create = create;
  }

  of(certificates: readonly CertificateAndKey[]): TlsServer {
    let node = this.#root;
    for (const certificate of certificates) {
      const next = node.longer.get(certificate) ?? { longer: new WeakMap() };
      node.longer.set(certificate, next);
      node = next;
    }
    node.server ??= this.#create(certificates);
    return node.server;
  }
}

interface ServerNode {
  server?: TlsServer;
  /** Lists that continue with another certificate. */
  readonly longer: WeakMap<CertificateAndKey, ServerNode>;
}
