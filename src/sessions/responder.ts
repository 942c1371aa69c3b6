import type { Duplex } from "node:stream";
import type { StatusError } from "../api/status.ts";
import type { LingerTimes } from "../net/linger.ts";
import type { SessionClock } from "../net/session-clock.ts";

/** The parts that closing a connection needs. */
export interface ResponseContext {
  readonly clock: SessionClock;
  readonly lingerTimes: LingerTimes;
}

/** Writes answers in the listener's format. */
export interface Responder {
  /** Refuses an upgrade, and closes. */
  refuseUpgrade(socket: Duplex, refusal: StatusError, context: ResponseContext): void;
}
