/** The kind of session, and the protocols that it can use. */
type LoadKind = "exec" | "attach" | "port-forward";
type LoadProtocol = "ws-v5" | "ws-v4" | "spdy" | "tunnel" | "legacy";
/** "echo": the server returns what it receives. "upload", "download": one direction only. */
type LoadDirection = "echo" | "upload" | "download";
/**
 * How to check received bytes: against the sent seeded stream ("echo"), a digest that the remote
 * command prints ("digest"), numbered lines ("sequence"), or not at all.
 */
type Verification = "echo" | "digest" | "sequence" | "none";

/** The task of each generator process, as plain data for messages. */
export interface LoadPlan {
  readonly kind: LoadKind;
  readonly protocol: LoadProtocol;
  readonly direction: LoadDirection;
  readonly verification: Verification;
  /** Path and query below the server's URL. */
  readonly path: string;
  /** The pod's port, for port-forward. */
  readonly port: number;
  /** Concurrent sessions: the number to keep up, or, with an arrival rate, the maximum. */
  readonly sessions: number;
  /** New sessions per second, independent of earlier ones; 0 keeps `sessions` up instead. */
  readonly arrivalsPerSecond: number;
  /** Total sessions; 0 means as many as the duration allows. */
  readonly count: number;
  /** Milliseconds over which the sessions, or the rate, grow from zero. */
  readonly rampMs: number;
  readonly durationMs: number;
  /** Messages per session; 0 means as many as the duration allows. */
  readonly messages: number;
  readonly messageBytes: number;
  /** Messages per second and session; 0 means as fast as the server accepts them. */
  readonly messagesPerSecond: number;
  /**
   * The most messages per session in flight; 0 means as many as the server accepts. Only for
   * `echo`.
   */
  readonly messagesInFlight: number;
  /** Milliseconds without progress after which a session has failed. */
  readonly timeoutMs: number;
  readonly seed: number;
}

/** This program's part of a load that several programs run. */
export interface LoadPart {
  readonly index: number;
  readonly of: number;
}

/** One process' share of the plan. */
export interface LoadShare {
  readonly index: number;
  readonly processes: number;
  /** When the run starts, in milliseconds since 1970. */
  readonly startAtMs: number;
}

/**
 * Whether the protocol can close the input. If not, the client ends the session once everything has
 * returned.
 */
export function canEndInput({ kind, protocol }: Pick<LoadPlan, "kind" | "protocol">): boolean {
  return kind !== "attach" && protocol !== "ws-v4" && protocol !== "legacy";
}

/** The size of this share of `total`; shares differ by at most one. */
export function shareOf(total: number, { index, processes }: Pick<LoadShare, "index" | "processes">): number {
  return Math.floor(total / processes) + (index < total % processes ? 1 : 0);
}
