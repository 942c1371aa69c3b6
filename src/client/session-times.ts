import { SessionClock } from "../net/session-clock.ts";

/** All in milliseconds. The defaults are client-go's. */
export interface SessionTimes {
  /** A PING this often. */
  readonly pingIntervalMs: number;
  /** The same of a port-forward session. */
  readonly forwardPingIntervalMs: number;
  /**
   * A WebSocket whose server says nothing for this long, PONGs included, is given up: twelve PINGs and a second. The
   * time does not run while we do not read, nor while input that was sent may hold up the answer.
   */
  readonly deadlineMs: number;
  /** The server has this long to accept the SPDY streams of a session. */
  readonly streamCreationMs: number;
  /** A server that has sent its status and does not close is waited for this long. */
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
