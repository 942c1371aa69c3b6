import { forbidden } from "../../api/status.ts";
import type { Attributes, Authorizer } from "./authorizer.ts";

/**
 * May the user `create` what `get` was allowed for? A WebSocket can only be a GET, so `get pods/exec` alone would run commands
 * (kubernetes#78741). As kube-apiserver's gate AuthorizePodWebsocketUpgradeCreatePermission: for every GET on a streaming subresource,
 * before the pod is looked up; the refusal has the authorizer's bare reason.
 */
export async function requireCreatePermission(
  authorizer: Authorizer,
  attributes: Attributes,
  isGateEnabled: boolean,
): Promise<void> {
  if (!isGateEnabled || attributes.verb === "create") return;
  const { decision, reason } = await authorizer.authorize({ ...attributes, verb: "create" });
  if (decision !== "allow") throw forbidden(attributes.resource, attributes.name, reason);
}
