import { constants } from "node:crypto";
import { isIP } from "node:net";
import {
  type ConnectionOptions,
  checkServerIdentity,
  createSecureContext,
  type PeerCertificate,
  type SecureContext,
} from "node:tls";
import { keyPairOf } from "../config/key-pair.ts";

/** How we verify an upstream and identify ourselves to it. Texts and buffers are PEM. */
export interface UpstreamTlsOptions {
  /** Authorities that may have signed the upstream's certificate. Default: those that Node ships. */
  readonly ca?: string | Buffer | undefined;
  /** Our client certificate (chain). Default: none. */
  readonly certificate?: string | Buffer | undefined;
  /** The key of `certificate`. Default: none. */
  readonly key?: string | Buffer | undefined;
  /** The name that the certificate must carry, also sent as SNI. Default: the dialled host. */
  readonly serverName?: string | undefined;
  /**
   * Accepts any certificate, as the API server does for kubelets without
   * --kubelet-certificate-authority. Default: false.
   */
  readonly insecureSkipVerify?: boolean | undefined;
}

/** The peer's identity if it differs from the dialled host. */
interface ExpectedPeer {
  /** The name that the certificate must carry; absent: the host. */
  readonly serverName?: string | undefined;
  /** The common name that the certificate must also have; absent: any. */
  readonly commonName?: string | undefined;
}

/**
 * TLS sessions that one UpstreamTls remembers for resumption, 1 to 3 KiB each. Past it the oldest
 * is forgotten.
 */
const MAX_REMEMBERED_SESSIONS = 1000;

/**
 * One TLS identity for upstreams: certificates, and sessions to resume, which other identities never
 * get. One per configuration: parsing a CA takes milliseconds. Throws OpenSSL's error for bad PEM.
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

  /** Increases with each `replace`: connections with a lower generation use an older identity. */
  get generation(): number {
    return this.#generation;
  }

  /** Uses other certificates for new connections, and forgets sessions. If it throws, nothing changes. */
  replace(options: UpstreamTlsOptions): void {
    this.#context = contextOf(options);
    this.#options = options;
    this.#sessions.clear();
    this.#generation += 1;
  }

  /**
   * Options for `tls.connect` to this endpoint. ALPN offers only http/1.1, since an upgrade cannot run
   * over HTTP/2.
   */
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

  /** Called after a failed handshake, so that the next one does not resume. */
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
    // As in Go: an upstream could otherwise demand signatures without limit.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate }),
    ...(key === undefined ? {} : { key }),
  });
}

const MAX_QUOTED_CHARACTERS = 128;

/** The key includes the expected peer, because a resumed session is not verified again. */
function keyOf(host: string, port: number, { serverName = "", commonName = "" }: ExpectedPeer): string {
  return JSON.stringify([host, port, serverName, commonName]);
}

function checkCommonName(wanted: string | undefined, { subject }: PeerCertificate): Error | undefined {
  if (wanted === undefined || subject.CN === wanted) return undefined;
  // A subject may have several common names of any length.
  const found = String(subject.CN).slice(0, MAX_QUOTED_CHARACTERS);
  return new Error(`x509: certificate is valid for ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}
