import type { ContainerStatus, Pod, PodStatus } from "../api/objects.ts";
import type { ApiClient } from "./api-client.ts";
import { decodedObject, objectPath } from "./live-object.ts";

const JUDGED_CONDITIONS = ["Ready", "ContainersReady"];

/**
 * Writes `started`, `ready` and conditions to a live pod with a strategic merge patch, as a kubelet
 * does. The uid protects a new pod with the same name. Rejects as ApiClient, and with
 * BadObjectError.
 */
export async function publishPodStatus(
  client: Pick<ApiClient, "json">,
  { metadata }: Pod,
  status: PodStatus,
): Promise<void> {
  const { namespace = "", name, uid } = metadata;
  const path = objectPath("Pod", namespace, name);
  const live = decodedObject("Pod", await client.json({ path })) as Pod;
  if (live.metadata.uid !== uid) return;
  const json = {
    metadata: { uid },
    status: {
      // The patch merges conditions by type, so it must remove an outdated reason explicitly.
      conditions: (status.conditions ?? [])
        .filter(({ type }) => JUDGED_CONDITIONS.includes(type))
        .map((condition) => ({ reason: null, message: null, ...condition })),
      ...judged("containerStatuses", live.status, status),
      ...judged("initContainerStatuses", live.status, status),
    },
  };
  const contentType = "application/strategic-merge-patch+json";
  await client.json({ method: "PATCH", path: `${path}/status`, body: { contentType, json } });
}

/** The patch replaces these lists, so it repeats the entries that others wrote. */
function judged(
  list: "containerStatuses" | "initContainerStatuses",
  live: PodStatus = {},
  known: PodStatus,
): { [List in typeof list]?: readonly ContainerStatus[] } {
  const ours = known[list];
  if (ours === undefined) return {};
  const byName = new Map((live[list] ?? []).map((status) => [status.name, status]));
  return { [list]: ours.map((status) => ({ ...byName.get(status.name), ...status })) };
}
