import type { SessionClock } from "../net/session-clock.ts";
import type { FakeNodeLimits } from "./limits.ts";

/** A session that the node must be able to end. */
export interface LiveSession {
  abort(): void | Promise<void>;
}

/** What every session needs of its node. */
export interface ServingContext {
  readonly limits: FakeNodeLimits;
  readonly clock: SessionClock;
  /** Sessions add themselves when they start and leave when nothing of them is left. */
  readonly sessions: Set<LiveSession>;
}
