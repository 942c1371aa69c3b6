// packages/client/observability: faults that are contained, trace contexts

import { EventEmitter } from "node:events";

/** Where an unexpected exception was caught: a label of `sluice_internal_errors_total`. */
export const FAULT_PLACES = [
  "listener", // before a request has an owner
  "request",
  "exchange", // forwarded to a backend, an API server
  "session", // exec, attach, port-forward, a forwarded upgrade
  "observer", // a session's observer; the session continues without it
  "probe",
  "cluster", // a listener of the cluster store
  "clock", // a deadline without a session: a lingering connection, a heartbeat
  "process", // caught nowhere else
] as const;
export type FaultPlace = (typeof FAULT_PLACES)[number];

type Report = (where: FaultPlace, error: unknown) => void;

const reports = new Set<Report>();

/**
 * Calls `report` for every later fault of this process, until the returned function is called.
 * Faults belong to the process, not to a gateway.
 */
export function onFault(report: Report): () => void {
  reports.add(report);
  return () => reports.delete(report);
}

/** Logs and counts a caught fault. Never throws. */
export function reportFault(where: FaultPlace, error: unknown): void {
  if (reports.size === 0) process.emitWarning(error instanceof Error ? error : String(error));
  for (const report of reports) {
    try {
      report(where, error);
    } catch (another) {
      process.emitWarning(another instanceof Error ? another : String(another));
    }
  }
}

/**
 * Runs code of one exchange, session or probe. Reports an exception, then ends its owner by
 * `onFailure`.
 */
export function contain(where: FaultPlace, run: () => void, onFailure: (error: unknown) => void): void {
  try {
    run();
  } catch (error) {
    settleFault(where, error, onFailure);
  }
}

/** The same for asynchronous code. */
export function containAsync(
  where: FaultPlace,
  running: Promise<unknown>,
  onFailure: (error: unknown) => void,
): void {
  running.catch((error: unknown) => settleFault(where, error, onFailure));
}

interface Owner {
  where: FaultPlace;
  onFailure: (error: unknown) => void;
}

const OWNER = Symbol("owner");

interface OwnedEmitter extends EventEmitter {
  [OWNER]?: Owner;
}

/**
 * Reports exceptions of the emitter's present and later listeners, and ends their owner by
 * `onFailure`. A second call names a socket's new owner.
 */
export function containEvents(
  emitter: OwnedEmitter,
  where: FaultPlace,
  onFailure: (error: unknown) => void,
): void {
  const known = emitter[OWNER];
  if (known !== undefined) {
    known.where = where;
    known.onFailure = onFailure;
    return;
  }
  emitter[OWNER] = { where, onFailure };
  emitter.emit = emitter.emit === emitEvent ? containedEmit : containing(emitter.emit);
}

const emitEvent = EventEmitter.prototype.emit;

/**
 * One function for all sockets and streams; its callee is a constant, so that V8 can inline it and
 * omit the array.
 */
const containedEmit = containing(emitEvent);

function containing(emit: EventEmitter["emit"]): EventEmitter["emit"] {
  return function contained(this: OwnedEmitter, ...event: Parameters<typeof emit>): boolean {
    try {
      return emit.apply(this, event);
    } catch (error) {
      const { where, onFailure } = this[OWNER] as Owner;
      settleFault(where, error, onFailure);
      return true;
    }
  };
}

/**
 * Reports a caught fault and ends its owner. The end may throw as well, because the owner's state
 * is broken. Never throws.
 */
export function settleFault(where: FaultPlace, error: unknown, onFailure: (error: unknown) => void): void {
  reportFault(where, error);
  try {
    onFailure(error);
  } catch (another) {
    reportFault(where, another);
  }
}
