import type { Container } from "../../api/objects.ts";
import type { Probe } from "../../api/probe-objects.ts";

interface ResultChange {
  readonly containerId: string;
  readonly podUid: string;
  readonly result: BelievedResult;
}

/** One probe kind's verdicts about containers. Listeners hear changes only. */
export class ProbeResults {
  readonly #results = new Map<string, BelievedResult>();
  readonly #listeners = new Set<(change: ResultChange) => void>();

  get(containerId: string): BelievedResult | undefined {
    return this.#results.get(containerId);
  }

  set(containerId: string, podUid: string, result: BelievedResult): void {
    if (this.#results.get(containerId) === result) return;
    this.#results.set(containerId, result);
    for (const listener of [...this.#listeners]) listener({ containerId, podUid, result });
  }

  remove(containerId: string): void {
    this.#results.delete(containerId);
  }

  get size(): number {
    return this.#results.size;
  }

  subscribe(listener: (change: ResultChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** One container's probe as `/debug/probes` shows it: without any request, output or response. */
export interface ProbeState {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly probe: "Liveness" | "Readiness" | "Startup";
  /** The verdict about the container; absent while there is none. */
  readonly result?: string | undefined;
  /** The outcome of the last counted round, and the number of equal outcomes in a row. */
  readonly lastRound?: string | undefined;
  readonly rounds: number;
  /** Cause and time of the last unsuccessful round. */
  readonly lastFailure?: { readonly cause: string | undefined; readonly at: Date } | undefined;
}

/** Spelled as in the kubelet's Events and metrics. */
export const PROBE_KINDS = ["Liveness", "Readiness", "Startup"] as const;
export type ProbeKind = (typeof PROBE_KINDS)[number];

/** The verdict about a container after thresholds. */
export type BelievedResult = "Success" | "Failure" | "Unknown";

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

/** Applies core/v1's defaults. 0 means the default in fields that cannot be 0. */
export function timingOf(probe: Probe): ProbeTiming {
  return {
    initialDelaySeconds: probe.initialDelaySeconds ?? 0,
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}
