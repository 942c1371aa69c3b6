import type { Bandwidth } from "../../net/bandwidth.ts";
import type { LingerTimes } from "../../net/linger.ts";
import type { SessionClock, Ticking } from "../../net/session-clock.ts";
import type { CauseOfOurs, SessionEnd } from "./session-end.ts";

/** What there is to say of a session that is over. Byte counts are payload, without framing, where the session is translated; relays and tunnels count what they carry. */
export interface SessionReport extends SessionEnd {
  /** Upstream to downstream. */
  readonly downstreamBytes: number;
  /** Downstream to upstream. */
  readonly upstreamBytes: number;
}

/** A session that is being carried. Its owner ticks it, may end it early, and is told once when it is over. */
export interface StreamingSession extends Ticking {
  /** What it has carried so far. */
  readonly traffic: Pick<Traffic, "downstreamBytes" | "upstreamBytes">;
  /** Ends it now, truthfully: the client never takes what it has for a success. */
  end(cause: CauseOfOurs, message: string): void;
}

/** What every carrier needs beside its two sockets. */
export interface SessionContext {
  readonly clock: SessionClock;
  readonly lingerTimes: LingerTimes;
  readonly timeouts: SessionTimeouts;
  /** Absent: as fast as both sides take it. */
  readonly bandwidth?: Bandwidth | undefined;
  /** Called once, when nothing is carried any more. Sockets may still be draining. */
  onOver(): void;
  /** Called once, with or after `onOver`: a completed session's outcome is known when its client has all of it. */
  onReport?(report: SessionReport): void;
}

/** All in milliseconds. */
export interface SessionTimeouts {
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

/** Counts the payload of a session and remembers when some last moved. */
export class Traffic {
  downstreamBytes = 0;
  upstreamBytes = 0;
  #seenBytes = 0;
  #lastMovedMs: number;

  constructor(nowMs: number) {
    this.#lastMovedMs = nowMs;
  }

  /** Since when nothing moved. Reads the clock's time instead of one per chunk: the hot path only adds. */
  idleForMs(nowMs: number): number {
    const bytes = this.downstreamBytes + this.upstreamBytes;
    if (bytes !== this.#seenBytes) {
      this.#seenBytes = bytes;
      this.#lastMovedMs = nowMs;
    }
    return nowMs - this.#lastMovedMs;
  }
}
