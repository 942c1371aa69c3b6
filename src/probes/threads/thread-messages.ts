import type { FaultPlace } from "../../observability/faults.ts";
import type { ProbeResult, ProbeVerdict, WireFacts } from "../probe-result.ts";

/** One probe for a thread. `probe` is what `described` says of it: texts are cheaper to send than objects, and known again when they return. */
export type ThreadRun = readonly [id: number, probe: string];

/** To a thread: probes to run, and cancelled runs. */
export interface ThreadRequest {
  readonly runs: readonly ThreadRun[];
  readonly cancelled: readonly number[];
}

/** From a thread: results by id. What was on the wire comes along where a cause is asked for: of what did not succeed. */
export type ThreadAnswer = readonly ThreadResult[];

/** From a thread: a fault, to be counted and logged where the others are. */
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
