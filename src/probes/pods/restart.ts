import type { Pod } from "../../api/objects.ts";
import { probedContainers } from "../worker/probe-manager.ts";
import { type ProbeKind, probeOf } from "../worker/probe-results.ts";
import type { ProbeEvent } from "../worker/prober.ts";

/** A container whose liveness or startup probe failed too often. */
export interface RestartRequest {
  readonly pod: Pod;
  readonly containerName: string;
  readonly containerId: string;
  /** The seconds between the request to end and the kill. */
  readonly gracePeriodSeconds: number;
  readonly event: ProbeEvent;
}

/** The kubelet never kills at once, because a process may be about to end. */
const MIN_GRACE_PERIOD_SECONDS = 2;
const DEFAULT_GRACE_PERIOD_SECONDS = 30;

export function restartRequest(
  pod: Pod,
  containerName: string,
  containerId: string,
  kind: Exclude<ProbeKind, "Readiness">,
): RestartRequest {
  const message = `Container ${containerName} failed ${kind.toLowerCase()} probe, will be restarted`;
  return {
    pod,
    containerName,
    containerId,
    gracePeriodSeconds: gracePeriodOf(pod, containerName, kind),
    event: {
      type: "Normal",
      reason: "Killing",
      message,
      summary: message,
    },
  };
}

/** The pod's deletion grace period, else the probe's, else the pod's; never below two seconds. */
function gracePeriodOf(pod: Pod, containerName: string, kind: ProbeKind): number {
  const { deletionTimestamp, deletionGracePeriodSeconds } = pod.metadata;
  const container = probedContainers(pod).find(({ name }) => name === containerName);
  const ofProbe = container && probeOf(container, kind)?.terminationGracePeriodSeconds;
  const ofPod = pod.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_PERIOD_SECONDS;
  const isDeleted = deletionTimestamp !== undefined && typeof deletionGracePeriodSeconds === "number";
  return Math.max(MIN_GRACE_PERIOD_SECONDS, isDeleted ? deletionGracePeriodSeconds : (ofProbe ?? ofPod));
}
