import type { LingerTimes } from "@sluice/client/internal/net/linger";
import type { Ticking } from "@sluice/client/internal/net/session-clock";
import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";

/**
 * A session's outcome. Translated sessions count payload without framing; relays and tunnels count the
 * bytes that they carry.
 */
export interface SessionReport extends Omit<SessionEnd, "status"> {
  /** Upstream to downstream. */
  readonly downstreamBytes: number;
  /** Downstream to upstream. */
  readonly upstreamBytes: number;
}

/**
 * A running session. Its lifecycle ticks it, may end it early, and is notified once when it is
 * over.
 */
export interface StreamingSession extends Ticking {
  /**
   * Ends the session now, at a message boundary. The client gets `statusOf(end)` in its protocol's form,
   * and must not take the partial output for a success.
   */
  end(end: SessionEnd): void;
  /**
   * Writes the warning before a limit ends the session. Absent if the protocol cannot carry one.
   */
  warn?(message: string): void;
}

/** All in milliseconds. */
export interface SessionTimeouts extends LingerTimes {
  /**
   * A session without traffic in either direction for this long ends. Heartbeats count only if the
   * frames are not decoded.
   */
  readonly idleMs: number;
  /** The session ends this long after its start, even with traffic. Absent: never. */
  readonly maxDurationMs?: number | undefined;
  /** The upstream has this long to accept the streams of an exec or attach. */
  readonly streamCreationMs: number;
  readonly webSocketPingMs: number;
  readonly unsolicitedPongMs: number;
  readonly spdyPingMs: number;
}
