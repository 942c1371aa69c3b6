import type { Duplex } from "node:stream";
import type { StatusError } from "../api/status.ts";
import type { LingerTimes } from "../net/linger.ts";
import type { SessionClock } from "../net/session-clock.ts";

/** What the end of a connection takes. */
export interface ResponseContext {
  readonly clock: SessionClock;
  readonly lingerTimes: LingerTimes;
}

/** Answers in a listener's own words. */
export interface Responder {
  /** Refuses an upgrade, and closes. */
  refuseUpgrade(socket: Duplex, refusal: StatusError, context: ResponseContext): void;
}
