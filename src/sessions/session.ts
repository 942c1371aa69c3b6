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
 * Bytes of a command's input that wait for its node. Past it a joiner's input waits at the joiner.
 */
export const MAX_PENDING_INPUT: number = 16 * 1024;

/**
 * What became of a joiner's input. `later`: none of it was taken, because the node is behind, or
 * the session's own client is within a message. `no-input`: the command reads no input, or no more.
 */
export type InputResult = "taken" | "later" | "no-input";

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
  /**
   * Writes what a joiner typed into the command's stdin, between two messages of the session's own
   * client. Absent if the session has no stdin, or its bytes are not decoded.
   */
  input?(bytes: Uint8Array, by: string): InputResult;
  /** False once nothing reads a joiner's input. */
  readonly readsInput?: boolean;
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
