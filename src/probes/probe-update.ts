import type { PodStatus } from "../api/objects.ts";

/** A change that the probing worker sends to the others. */
export type ProbeUpdate =
  /**
   * `status` undefined: the pod was deleted. Sent only without a live cluster, which notifies every
   * process itself.
   */
  | {
      readonly kind: "pod";
      readonly namespace: string;
      readonly name: string;
      readonly status: PodStatus | undefined;
    }
  /** Repeated at every round that finds it dead. */
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

/** Whether to store it. Deleted and healthy upstreams need no entry, because healthy is the default. */
export function isLasting(finding: ProbeUpdate): boolean {
  return finding.kind === "pod" ? finding.status !== undefined : !finding.isHealthy;
}
