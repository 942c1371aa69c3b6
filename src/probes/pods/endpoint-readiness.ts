import type { Pod } from "../../api/objects.ts";
import type { Endpoint, EndpointSlice } from "../../api/service-objects.ts";

/**
 * Puts the pod's readiness into the slice like the endpoint slice controller; returns the same
 * object if nothing changes. With publishNotReadyAddresses every pod counts as ready.
 */
export function withPodReadiness(
  slice: EndpointSlice,
  pod: Pod,
  isReady: boolean,
  publishesNotReady: boolean,
): EndpointSlice {
  let isChanged = false;
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const conditions = {
    ready: publishesNotReady || (isReady && !terminating),
    serving: isReady,
    terminating,
  };
  const endpoints = (slice.endpoints ?? []).map((endpoint) => {
    if (!isOf(endpoint, pod)) return endpoint;
    const old = endpoint.conditions ?? {};
    const isSame =
      old.ready === conditions.ready &&
      old.serving === conditions.serving &&
      (old.terminating ?? false) === conditions.terminating;
    if (isSame) return endpoint;
    isChanged = true;
    return { ...endpoint, conditions };
  });
  return isChanged ? { ...slice, endpoints } : slice;
}

function isOf({ targetRef, addresses }: Endpoint, { metadata, status }: Pod): boolean {
  if (targetRef?.name !== undefined) return targetRef.kind === "Pod" && targetRef.name === metadata.name;
  return status?.podIP !== undefined && addresses.includes(status.podIP);
}
