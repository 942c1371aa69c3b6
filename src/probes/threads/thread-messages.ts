import type { ProbeResult, ProbeVerdict } from "../probe-result.ts";

/** One probe for a thread. `probe` is what `described` says of it: texts are cheaper to send than objects, and known again when they return. */
export type ThreadRun = readonly [id: number, probe: string];

/** To a thread: probes to run, and cancelled runs. */
export interface ThreadRequest {
  readonly runs: readonly ThreadRun[];
  readonly cancelled: readonly number[];
}

/** From a thread: results by id. What was on the wire stays there: it is no part of a verdict. */
export type ThreadAnswer = readonly ThreadResult[];
export type ThreadResult = readonly [id: number, result: ProbeVerdict, message: string, error?: string];

export function toThreadResult(id: number, { result, message, error }: ProbeResult): ThreadResult {
  return error === undefined ? [id, result, message] : [id, result, message, error];
}

export function fromThreadResult([, result, message, error]: ThreadResult): ProbeResult {
  return { result, message, wire: {}, ...(error === undefined ? {} : { error }) };
}
