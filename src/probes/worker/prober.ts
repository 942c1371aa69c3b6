import { failureReasonOf } from "../failure-reason.ts";
import type { ProbeResult } from "../probe-result.ts";
import type { ProbeKind } from "./probe-kind.ts";

/** A round's result; undefined: the probe could not run. */
export type RoundResult = "Success" | "Failure" | undefined;

/** A core/v1 Event about a container. */
export interface ProbeEvent {
  readonly type: "Warning" | "Normal";
  readonly reason: string;
  /**
   * The kubelet's text. It may quote the probe's request or the container's output: for Events,
   * never for logs.
   */
  readonly message: string;
  /** The message without quotations. */
  readonly summary: string;
  /** Why a probe failed, without quotations. */
  readonly cause?: string | undefined;
}

/** Attempts without a pause; only errors are retried, never failures. */
export const MAX_PROBE_ATTEMPTS = 3;

/** One round: up to three attempts, and the kubelet's Event in its words. */
export async function runRound(
  kind: ProbeKind,
  attempt: () => Promise<ProbeResult>,
  onEvent: (event: ProbeEvent) => void,
  isCommand = false,
): Promise<RoundResult> {
  let last = await attempt();
  for (let attempts = 1; last.error !== undefined && attempts < MAX_PROBE_ATTEMPTS; attempts++) {
    last = await attempt();
  }
  const { result, message, error } = last;
  const record = (reason: string, summary: string, detail: string) =>
    onEvent({
      type: "Warning",
      reason,
      message: `${summary}: ${detail}`,
      summary,
      cause: failureReasonOf(last, isCommand),
    });
  if (error !== undefined) {
    record("Unhealthy", `${kind} probe errored and resulted in ${result.toLowerCase()} state`, error);
    return undefined;
  }
  switch (result) {
    case "Success":
      return "Success";
    case "Warning":
      record("ProbeWarning", `${kind} probe warning`, message);
      return "Success";
    case "Failure":
      record("Unhealthy", `${kind} probe failed`, message);
      return "Failure";
    case "Unknown":
      return "Failure";
  }
}
