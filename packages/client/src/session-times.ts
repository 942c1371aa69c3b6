import { SessionClock } from "./net/session-clock.ts";

/** Times in milliseconds. The defaults are client-go's. */
export interface SessionTimes {
  /** The interval between PINGs. */
  readonly pingIntervalMs: number;
  /** The interval between PINGs in a port-forward session. */
  readonly forwardPingIntervalMs: number;
  /**
   * How long a WebSocket server may be silent, PONGs included: twelve PINGs and a second. The time
   * stops while we do not read, and while sent input may delay the answer.
   */
  readonly deadlineMs: number;
  /** How long the server may take to accept a session's SPDY streams. */
  readonly streamCreationMs: number;
  /** How long the server may take to close after it sent its status. */
  readonly closeWaitMs: number;
  readonly clock: SessionClock;
}

/** One timer for all sessions of the process. */
const sharedClock = new SessionClock();

export const defaultSessionTimes: SessionTimes = {
  pingIntervalMs: 5_000,
  forwardPingIntervalMs: 10_000,
  deadlineMs: 61_000,
  streamCreationMs: 30_000,
  closeWaitMs: 10_000,
  clock: sharedClock,
};

/** Client options for resumable sessions. */
export interface ResumeOptions {
  /** The clock for heartbeats and deadlines; defaults to the one that all sessions share. */
  readonly clock?: SessionTimes["clock"] | undefined;
  /**
   * Called with a sentence, without secrets, when a connection is lost and when the session
   * resumes. Default: ignored.
   */
  note?(text: string): void;
  /**
   * In milliseconds: the interval between PINGs, and how long a connection may be silent. Default:
   * 5,000 and 15,000.
   */
  readonly heartbeat?: { readonly pingIntervalMs: number; readonly silenceMs: number } | undefined;
}
