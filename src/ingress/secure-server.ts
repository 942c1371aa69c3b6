import { randomBytes } from "node:crypto";
import { createServer, type Server } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import { answerPlainHttp } from "@sluice/client/internal/http/downstream/http1-server";
import { type ClientHello, ClientHelloReader } from "@sluice/protocols/tls";
import { cipherOptionsOf, type TlsSettings } from "../config/sections/tls-settings.ts";
import { judgeByFirstBytes } from "../listeners/proxy-protocol.ts";
import type { CertificateAndKey } from "./certificates.ts";

export interface SecureServerOptions {
  /** For clients that send no server name, or an unknown one. */
  readonly defaultTls: CertificateAndKey;
  /**
   * A server name's certificates with different key types, so that the client gets one it can
   * verify. Empty for an unknown name.
   */
  readonly certificatesFor: (serverName: string) => readonly CertificateAndKey[];
  /** Milliseconds for the ClientHello, and again for the rest of the handshake. */
  readonly handshakeMs: number;
  /** Encrypts TLS tickets; absent: this process makes its own keys. */
  readonly ticketKeys?: Buffer | undefined;
  /** Absent means the defaults. */
  readonly settings?: TlsSettings | undefined;
  readonly onSecure: (socket: TLSSocket) => void;
}

interface SecureServer {
  /** Accepts the connections; does not listen yet. */
  readonly server: Server;
  /** Replaces the default for new handshakes. OpenSSL must accept it. */
  setDefault(defaultTls: CertificateAndKey): void;
}

/**
 * Bytes of a ClientHello up to its server name: a few hundred, 2,000 with post-quantum keys. Past
 * it, the client gets the default certificate.
 */
const MAX_CLIENT_HELLO_BYTES = 16 * 1024;
const TICKET_KEY_BYTES = 48;
/**
 * `curl --http1.0` offers only the last; a handshake without a common protocol fails (RFC 7301
 * section 3.2).
 */
const ALPN_PROTOCOLS = ["h2", "http/1.1", "http/1.0"];

/**
 * Chooses certificates before the handshake: each list has its own TLS server. Up to Node 24,
 * `SNICallback` only adds to the default certificates, and OpenSSL may prefer those.
 */
export function createSecureServer(options: SecureServerOptions): SecureServer {
  const { handshakeMs, certificatesFor, onSecure } = options;
  // One key for all servers: a session resumes even after its name's Secret was replaced.
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
    // node:tls only reports a handshake that takes too long; node:https destroys its socket.
    server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
      if (error.code === "ERR_TLS_HANDSHAKE_TIMEOUT") socket.destroy();
    });
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

/** Reads one connection's name. */
function nameReader(): (seen: Buffer, newest: Buffer) => ClientHello | undefined {
  const reader = new ClientHelloReader();
  return (seen, newest) =>
    seen.byteLength > MAX_CLIENT_HELLO_BYTES ? { serverName: undefined } : reader.push(newest);
}

/**
 * Creates one server for each list of certificates, and keeps it while the list is referenced
 * elsewhere.
 */
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
  /** Longer lists that begin with this list. */
  readonly longer: WeakMap<CertificateAndKey, ServerNode>;
}
