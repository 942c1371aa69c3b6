/** The metav1.Status with which an API server refuses a request. Fields of a wrong type count as absent. */
interface ApiStatus {
  readonly status: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
}

/** The step at which a connection failed. */
export type ConnectLeg =
  /** The proxy could not be reached, or refused to connect. */
  | "proxy"
  /** Name lookup or TCP connect. */
  | "tcp"
  /** The TLS handshake with the server. */
  | "tls"
  /** A status other than 101. */
  | "http"
  /** A 101 to another protocol, or with a wrong accept value. */
  | "handshake"
  /** No usable answer: closed, late, malformed or endless. */
  | "response"
  /** The caller's signal aborted it. */
  | "aborted";

export interface ConnectErrorDetails {
  /** The status of the server's complete HTTP answer. */
  readonly httpStatus?: number | undefined;
  /** The Kubernetes Status in its body. */
  readonly apiStatus?: ApiStatus | undefined;
  /** The protocols that the server accepts: its X-Accepted-Stream-Protocol-Versions lines. */
  readonly acceptedProtocols?: readonly string[] | undefined;
  readonly cause?: unknown;
}

/** The connection could not be upgraded; no socket is left open. The message is worded as client-go's. */
export class ConnectError extends Error {
  override readonly name = "ConnectError";
  readonly leg: ConnectLeg;
  readonly httpStatus: number | undefined;
  readonly apiStatus: ApiStatus | undefined;
  readonly acceptedProtocols: readonly string[];

  constructor(leg: ConnectLeg, message: string, details: ConnectErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.leg = leg;
    this.httpStatus = details.httpStatus;
    this.apiStatus = details.apiStatus;
    this.acceptedProtocols = details.acceptedProtocols ?? [];
  }

  /**
   * True for a complete HTTP answer that is not a valid 101. client-go calls it an upgrade failure and
   * falls back.
   */
  get isUpgradeFailure(): boolean {
    return this.leg === "http" || this.leg === "handshake";
  }
}
