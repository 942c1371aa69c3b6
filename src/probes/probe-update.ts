import type { PodStatus } from "../api/objects.ts";

/** What the worker that probes for all tells the others, when it changes. */
export type ProbeUpdate =
  /** `status` undefined: the pod is gone. Only without a live cluster, which tells everybody by itself. */
  | {
      readonly kind: "pod";
      readonly namespace: string;
      readonly name: string;
      readonly status: PodStatus | undefined;
    }
  /** Told again at every round that finds it dead. */
  | {
      readonly kind: "node" | "gateway";
      readonly name: string;
      readonly isHealthy: boolean;
      readonly reason: string;
    };

export function keyOfFinding(finding: ProbeUpdate): string {
  return finding.kind === "pod"
    ? `pod/${finding.namespace}/${finding.name}`
    : `${finding.kind}/${finding.name}`;
}

/** Whether to keep it: upstreams that are gone or alive need no entry, because alive is the default. */
export function isLasting(finding: ProbeUpdate): boolean {
  return finding.kind === "pod" ? finding.status !== undefined : !finding.isHealthy;
}
