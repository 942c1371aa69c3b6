import type { Duplex } from "node:stream";
import type { StatusError } from "@sluice/client/internal/api/status";
import type { LingerTimes } from "@sluice/client/internal/net/linger";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";

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
