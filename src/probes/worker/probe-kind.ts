import type { Container } from "../../api/objects.ts";
import type { Probe } from "../../api/probe-objects.ts";

/** Spelled as in the kubelet's Events and metrics. */
export const PROBE_KINDS = ["Liveness", "Readiness", "Startup"] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];

/** The verdict about a container after thresholds. */
export type BelievedResult = "Success" | "Failure" | "Unknown";

/** Before the first round counts: alive, not ready, not known to have started. */
export const INITIAL_RESULTS: Readonly<Record<ProbeKind, BelievedResult>> = {
  Liveness: "Success",
  Readiness: "Failure",
  Startup: "Unknown",
};

export function probeOf(container: Container, kind: ProbeKind): Probe | undefined {
  switch (kind) {
    case "Liveness":
      return container.livenessProbe;
    case "Readiness":
      return container.readinessProbe;
    case "Startup":
      return container.startupProbe;
  }
}

/** A probe's numbers with all defaults filled in: seconds, and runs. */
export interface ProbeTiming {
  readonly initialDelaySeconds: number;
  readonly timeoutSeconds: number;
  readonly periodSeconds: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

/** Applies core/v1's defaults; 0 means the default if 0 makes no sense. */
export function timingOf(probe: Probe): ProbeTiming {
  return {
    initialDelaySeconds: probe.initialDelaySeconds ?? 0,
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}
