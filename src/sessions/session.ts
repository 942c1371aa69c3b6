import type { LingerTimes } from "../net/linger.ts";
import type { Ticking } from "../net/session-clock.ts";
import type { CauseOfOurs, SessionEnd } from "./session-end.ts";

/**
 * The outcome of a session. Byte counts are payload, without framing, where the session is translated; relays and tunnels count what they
 * carry.
 */
export interface SessionReport extends SessionEnd {
  /** Upstream to downstream. */
  readonly downstreamBytes: number;
  /** Downstream to upstream. */
  readonly upstreamBytes: number;
}

/** A session that is being carried. Its lifecycle ticks it, may end it early, and is notified once when it is over. */
export interface StreamingSession extends Ticking {
  /** Ends it now, truthfully: the client never takes what it has for a success. */
  end(cause: CauseOfOurs, message: string): void;
  /** Writes what comes before a limit ends it. Absent: a warning has no place among the bytes. */
  warn?(message: string): void;
}

/** All in milliseconds. */
export interface SessionTimeouts extends LingerTimes {
  /** Nothing in either direction for this long ends the session. Heartbeats count only where frames are not looked at. */
  readonly idleMs: number;
  /** The session ends this long after its start, whatever moves. Absent: never. */
  readonly maxDurationMs?: number | undefined;
  /** The upstream has this long to accept the streams of an exec or attach. */
  readonly streamCreationMs: number;
  readonly webSocketPingMs: number;
  readonly unsolicitedPongMs: number;
  readonly spdyPingMs: number;
}
