import type { FaultPlace } from "@sluice/client/internal/observability/faults";
import type { ProbeResult, ProbeVerdict, WireFacts } from "../probe-result.ts";

/**
 * One probe for a thread. `probe` is the text from `described`: texts are cheaper to send than
 * objects, and can be cached by value.
 */
export type ThreadRun = readonly [id: number, probe: string];

/** To a thread: probes to run, and cancelled runs. */
export interface ThreadRequest {
  readonly runs: readonly ThreadRun[];
  readonly cancelled: readonly number[];
}

/** From a thread: results by id. Unsuccessful ones include the wire facts, for diagnosis. */
export type ThreadAnswer = readonly ThreadResult[];

/** From a thread: a fault, which the main thread counts and logs. */
export interface ThreadFault {
  readonly where: FaultPlace;
  readonly error: Error;
}

export type ThreadResult = readonly [
  id: number,
  result: ProbeVerdict,
  message: string,
  wire?: WireFacts,
  error?: string,
];

export function toThreadResult(id: number, { result, message, error, wire }: ProbeResult): ThreadResult {
  if (error !== undefined) return [id, result, message, wire, error];
  return result === "Success" ? [id, result, message] : [id, result, message, wire];
}

export function fromThreadResult([, result, message, wire = {}, error]: ThreadResult): ProbeResult {
  return { result, message, wire, ...(error === undefined ? {} : { error }) };
}
