import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { FakeNodeLimits } from "./limits.ts";

/** A session that the node must be able to end. */
export interface LiveSession {
  abort(): void | Promise<void>;
}

/** The parts of its node that a session needs. */
export interface ServingContext {
  readonly limits: FakeNodeLimits;
  readonly clock: SessionClock;
  /** A session adds itself at its start and removes itself when nothing of it is left. */
  readonly sessions: Set<LiveSession>;
}
