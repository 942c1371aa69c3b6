/** What kind of session is made, and of which protocols it may be. */
export type LoadKind = "exec" | "attach" | "port-forward";
export type LoadProtocol = "ws-v5" | "ws-v4" | "spdy" | "tunnel" | "legacy";
/** "echo": what is sent comes back. "upload", "download": one way. */
export type LoadDirection = "echo" | "upload" | "download";
/**
 * How arrived bytes are judged: against the seeded stream that was sent ("echo"), a digest that the remote command prints
 * ("digest"), numbered lines ("sequence"), or not at all.
 */
export type Verification = "echo" | "digest" | "sequence" | "none";

export const PROTOCOLS_OF: Readonly<Record<LoadKind, readonly LoadProtocol[]>> = {
  exec: ["ws-v5", "ws-v4", "spdy"],
  attach: ["ws-v5", "ws-v4", "spdy"],
  "port-forward": ["tunnel", "spdy", "legacy"],
};

/** What each generator process does. Plain data: it travels between processes. */
export interface LoadPlan {
  readonly kind: LoadKind;
  readonly protocol: LoadProtocol;
  readonly direction: LoadDirection;
  readonly verification: Verification;
  /** Path and query below the server's URL. */
  readonly path: string;
  /** Port-forward: the port of the pod. */
  readonly port: number;
  /** Sessions at once: as many as are kept up, or, with an arrival rate, as many as may be. */
  readonly sessions: number;
  /** New sessions per second, whatever became of the earlier ones; 0 keeps `sessions` up instead. */
  readonly arrivalsPerSecond: number;
  /** Sessions in all; 0 is as many as the duration brings. */
  readonly count: number;
  /** Time over which the sessions, or the rate, grow from nothing, in milliseconds. */
  readonly rampMs: number;
  readonly durationMs: number;
  /** Messages of each session; 0 is as many as the duration brings. */
  readonly messages: number;
  readonly messageBytes: number;
  /** Messages per second of each session; 0 is as fast as they are taken. */
  readonly messagesPerSecond: number;
  /** Messages of a session that are sent and not yet back, at most; 0: as many as the server takes. Only for `echo`. */
  readonly messagesInFlight: number;
  /** A session that makes no progress for so long has failed, in milliseconds. */
  readonly timeoutMs: number;
  readonly seed: number;
}

/** Which part of a load that several programs do is done here. */
export interface LoadPart {
  readonly index: number;
  readonly of: number;
}

/** Which part of the plan one of several processes does. */
export interface LoadShare {
  readonly index: number;
  readonly processes: number;
  /** When the run starts, in milliseconds since 1970. */
  readonly startAtMs: number;
}

/** Whether the protocol can say that input is over: otherwise the session is cut when everything has come back. */
export function canEndInput({ kind, protocol }: Pick<LoadPlan, "kind" | "protocol">): boolean {
  return kind !== "attach" && protocol !== "ws-v4" && protocol !== "legacy";
}

/** How many of `total` the share has: they differ by one at most. */
export function shareOf(total: number, { index, processes }: Pick<LoadShare, "index" | "processes">): number {
  return Math.floor(total / processes) + (index < total % processes ? 1 : 0);
}
