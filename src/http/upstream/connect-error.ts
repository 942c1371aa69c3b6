/** A metav1.Status as an API server answers a refused request with; fields of a wrong type count as absent. */
export interface ApiStatus {
  readonly status: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
}

/** What failed on the way to an upgraded connection. */
export type ConnectLeg =
  /** It could not be reached, or refused to connect. */
  | "proxy"
  /** Name lookup or TCP connect. */
  | "tcp"
  /** The handshake with the server. */
  | "tls"
  /** Another status than 101. */
  | "http"
  /** A 101 to another protocol, or with a wrong accept value. */
  | "handshake"
  /** No usable answer: closed, late, malformed, endless. */
  | "response"
  /** By the caller's signal. */
  | "aborted";

export interface ConnectErrorDetails {
  /** The status of the server's complete HTTP answer. */
  readonly httpStatus?: number | undefined;
  /** The Kubernetes Status in its body. */
  readonly apiStatus?: ApiStatus | undefined;
  /** What the server did accept: its X-Accepted-Stream-Protocol-Versions lines. */
  readonly acceptedProtocols?: readonly string[] | undefined;
  readonly cause?: unknown;
}

/** No upgraded connection came about; no socket is left. The message is worded as client-go words it. */
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

  /** A complete HTTP answer that is no good 101: what client-go calls an upgrade failure, and falls back on. */
  get isUpgradeFailure(): boolean {
    return this.leg === "http" || this.leg === "handshake";
  }
}
