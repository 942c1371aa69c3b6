import type { ProbeHandler } from "../../api/probe-objects.ts";
import type { ProbeResult } from "../probe-result.ts";
import type { ProbeOptions, ProbeTarget } from "../probe-target.ts";

/** One probe for a thread: what `runProbe` takes, as far as it can be sent. Never an exec probe. */
export interface ThreadRun {
  readonly id: number;
  readonly handler: ProbeHandler;
  readonly target: Pick<ProbeTarget, "host" | "containerPorts" | "name">;
  readonly options: Omit<ProbeOptions, "signal">;
}

/** To a thread: what is to be run, and which runs nobody wants any more. */
export interface ThreadRequest {
  readonly runs: readonly ThreadRun[];
  readonly cancelled: readonly number[];
}

/** From a thread: results by id. What was on the wire stays there: it is no part of a verdict. */
export type ThreadAnswer = readonly (readonly [id: number, result: Omit<ProbeResult, "wire">])[];
