import { isIP } from "node:net";
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  type PeerCertificate,
  type SecureContext,
} from "node:tls";
import { keyPairOf } from "../config/key-pair.ts";

/** How an upstream is trusted and how we identify ourselves to it. Texts and buffers are PEM. */
export interface UpstreamTlsOptions {
  /** Certificate authorities that may have signed the upstream's certificate; absent: the ones Node ships. */
  readonly ca?: string | Buffer | undefined;
  /** Our client certificate (chain) and its key. */
  readonly certificate?: string | Buffer | undefined;
  readonly key?: string | Buffer | undefined;
  /** The name that the certificate must carry and that is sent as SNI; absent: the dialled host. */
  readonly serverName?: string | undefined;
  /** Accept any certificate, as the API server does for kubelets without --kubelet-certificate-authority. */
  readonly insecureSkipVerify?: boolean | undefined;
}

/** The identity of the peer where it is not the dialled host. */
export interface ExpectedPeer {
  /** The name that the certificate must carry; absent: the host. */
  readonly serverName?: string | undefined;
  /** What its common name must be besides; absent: anything. */
  readonly commonName?: string | undefined;
}

/** Sessions remembered for resumption by one UpstreamTls; the oldest goes first. A session is 1-3 KiB. */
export const MAX_REMEMBERED_SESSIONS = 1000;

/**
 * One TLS identity towards upstreams: certificates, and sessions to resume, which never leave it. One per configuration: parsing a CA
 * takes milliseconds. Throws OpenSSL's error for bad PEM.
 */
export class UpstreamTls {
  #options: UpstreamTlsOptions;
  #context: SecureContext;
  #generation = 0;
  readonly #sessions = new Map<string, Buffer>();

  constructor(options: UpstreamTlsOptions = {}) {
    this.#context = contextOf(options);
    this.#options = options;
  }

  /** Higher after each `replace`: connections of before are of another identity. */
  get generation(): number {
    return this.#generation;
  }

  /** Takes other certificates for connections to come, and forgets sessions. What was before stays when this throws. */
  replace(options: UpstreamTlsOptions): void {
    this.#context = contextOf(options);
    this.#options = options;
    this.#sessions.clear();
    this.#generation += 1;
  }

  /** Options for `tls.connect` to that endpoint. ALPN offers http/1.1 only: an upgrade cannot run over HTTP/2. */
  connectOptions(host: string, port: number, expected: ExpectedPeer = {}): ConnectionOptions {
    const name = this.#options.serverName ?? expected.serverName ?? host;
    const session = this.#sessions.get(keyOf(host, port, expected));
    return {
      secureContext: this.#context,
      ALPNProtocols: ["http/1.1"],
      rejectUnauthorized: this.#options.insecureSkipVerify !== true,
      // RFC 6066 section 3: no IP address in SNI. The name is still verified, below.
      servername: isIP(name) === 0 ? name : "",
      checkServerIdentity: (_host: string, certificate: PeerCertificate) =>
        checkServerIdentity(name, certificate) ?? checkCommonName(expected.commonName, certificate),
      ...(session === undefined ? {} : { session }),
    };
  }

  rememberSession(host: string, port: number, session: Buffer, expected: ExpectedPeer = {}): void {
    const key = keyOf(host, port, expected);
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
    if (this.#sessions.size <= MAX_REMEMBERED_SESSIONS) return;
    const oldest = this.#sessions.keys().next();
    if (!oldest.done) this.#sessions.delete(oldest.value);
  }

  /** After a failed handshake: the next one starts afresh. */
  forgetSession(host: string, port: number, expected: ExpectedPeer = {}): void {
    this.#sessions.delete(keyOf(host, port, expected));
  }

  get rememberedSessions(): number {
    return this.#sessions.size;
  }
}

function contextOf({ ca, certificate, key }: UpstreamTlsOptions): SecureContext {
  if (certificate !== undefined && key !== undefined) keyPairOf(certificate.toString(), key.toString());
  return createSecureContext({
    minVersion: "TLSv1.2",
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
  });
}

/** A resumed session is not verified again, so it is only resumed where the same peer is expected. */
function keyOf(host: string, port: number, { serverName = "", commonName = "" }: ExpectedPeer): string {
  return JSON.stringify([host, port, serverName, commonName]);
}

function checkCommonName(wanted: string | undefined, { subject }: PeerCertificate): Error | undefined {
  if (wanted === undefined || subject.CN === wanted) return undefined;
  return new Error(
    `x509: certificate is valid for ${JSON.stringify(subject.CN)}, not ${JSON.stringify(wanted)}`,
  );
}
