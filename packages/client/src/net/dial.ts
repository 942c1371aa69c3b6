// packages/client/net: sockets: dialling, TLS, linger, reused reads, gathered writes

import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { goDialErrorText, joinHostPort } from "./go-dial-error.ts";
import { ReusedReads } from "./reused-reads.ts";
import type { UpstreamTls } from "./tls.ts";
import { abortedError, UpstreamError } from "./upstream-error.ts";

export interface UpstreamEndpoint {
  /** A name, or an IP address without brackets. */
  readonly host: string;
  readonly port: number;
  /** Absent: plain TCP. */
  readonly tls?: UpstreamTls | undefined;
  /** The name that the certificate must carry if `host` is already a resolved address. */
  readonly serverName?: string | undefined;
  /** The common name that the certificate must also have; absent: any. */
  readonly commonName?: string | undefined;
}

export interface DialOptions {
  /** Limit for name lookup, TCP connect and TLS handshake together. */
  readonly dialTimeoutMs?: number | undefined;
  /** Destroys the socket at once; the promise rejects with code "aborted". */
  readonly signal?: AbortSignal | undefined;
  /** Whether our side stays open after the upstream's FIN; default true. */
  readonly allowHalfOpen?: boolean | undefined;
  /** Reads into reused memory. For relayed sockets only: Node's HTTP client reads by itself. */
  readonly reusesReads?: boolean | undefined;
}

/** The timeout of Kubernetes' own dialler for kubelets. */
export const DEFAULT_DIAL_TIMEOUT_MS = 30_000;

/** Silence before the first TCP keepalive probe: below the 60 s of common load balancers. */
const TCP_KEEPALIVE_DELAY_MS = 30_000;

// Node tries a name's addresses in turn and gives each but the last this long. With its default of 250
// ms a slow but healthy IPv4 address loses to an unreachable IPv6 one.
const ADDRESS_ATTEMPT_TIMEOUT_MS = 1_000;

/**
 * Connects by TCP, or by TCP and verified TLS: half-open capable, no delay, keepalive, not yet read,
 * with an 'error' listener. Throws UpstreamError "dial-failed" or "aborted" and leaves nothing open.
 */
export function dial(endpoint: UpstreamEndpoint, options: DialOptions = {}): Promise<Socket> {
  const { signal, dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS } = options;
  if (signal?.aborted) return Promise.reject(abortedError());

  return new Promise((resolve, reject) => {
    const { host, port, tls } = endpoint;
    const socket = openSocket(endpoint, options);
    let address: string | undefined = isIP(host) === 0 ? undefined : host;
    let isConnected = false;

    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("error", onError).off("lookup", onLookup).off("connect", onConnect).off("close", onClose);
      socket.on("error", closeOnError);
    };
    const fail = (error: UpstreamError): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => fail(abortedError());
    const onError = (error: Error): void => {
      tls?.forgetSession(host, port, endpoint);
      const text = goDialErrorText(error, joinHostPort(address ?? host, port));
      fail(new UpstreamError("dial-failed", text, { cause: error, hasConnected: isConnected }));
    };
    const onClose = (): void => fail(new UpstreamError("dial-failed", "EOF", { hasConnected: isConnected }));
    const onLookup = (_error: unknown, found: string): void => {
      address ??= found;
    };
    const onConnect = (): void => {
      isConnected = true;
      socket.setNoDelay(true);
      socket.setKeepAlive(true, TCP_KEEPALIVE_DELAY_MS);
    };
    const onReady = (): void => {
      settle();
      resolve(socket);
    };
    const onTimeout = (): void =>
      fail(
        new UpstreamError("dial-failed", timeoutText(endpoint, address, isConnected), {
          hasConnected: isConnected,
        }),
      );

    const timer = setTimeout(onTimeout, dialTimeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("error", onError).on("lookup", onLookup).on("connect", onConnect).on("close", onClose);
    socket.once(tls === undefined ? "connect" : "secureConnect", onReady);
    // Stays registered: TLS 1.3 delivers its tickets after the handshake.
    if (tls !== undefined)
      socket.on("session", (session: Buffer) => tls.rememberSession(host, port, session, endpoint));
  });
}

function openSocket(endpoint: UpstreamEndpoint, dialOptions: DialOptions): Socket {
  const { host, port, tls } = endpoint;
  const reads = dialOptions.reusesReads ? new ReusedReads(tls === undefined ? "tcp" : "tls") : undefined;
  const options = {
    host,
    port,
    allowHalfOpen: dialOptions.allowHalfOpen ?? true,
    ...(reads && { onread: reads.options }),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT_MS,
  };
  const socket =
    tls === undefined
      ? connectTcp(options)
      : connectTls({ ...options, ...tls.connectOptions(host, port, endpoint) });
  reads?.attach(socket);
  return socket;
}

function timeoutText(endpoint: UpstreamEndpoint, address: string | undefined, isConnected: boolean): string {
  if (isConnected) return "net/http: TLS handshake timeout";
  if (address === undefined) return `dial tcp: lookup ${endpoint.host}: i/o timeout`;
  return `dial tcp ${joinHostPort(address, endpoint.port)}: i/o timeout`;
}

/** Node reports a broken TLS record after the handshake, and leaves the connection open and silent. */
function closeOnError(this: Socket, error: Error): void {
  this.destroy(error);
}

/** Host and port of an http or https URL. */
export function addressOfUrl(url: string): { host: string; port: number; isTls: boolean } {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === "https:";
  return {
    // URLs keep an IPv6 address's brackets; sockets do not accept them.
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (isTls ? 443 : 80) : Number(port),
    isTls,
  };
}

/** The DNS's longest name (RFC 1035 section 2.3.4), without a final dot. */
const MAX_NAME_CHARACTERS = 253;
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** RFC 1123 section 2.1, in either case; a final dot makes the name absolute. */
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*\\.?$`, "i");

/**
 * True for an IP address or a host name. Everything that is dialled, looked up or sent to a proxy must
 * be one.
 */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= MAX_NAME_CHARACTERS + 1 && HOST_NAME.test(text));
}
