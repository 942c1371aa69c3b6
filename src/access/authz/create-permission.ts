import { forbidden } from "../../api/status.ts";
import type { Attributes, Authorizer } from "./authorizer.ts";

/**
 * The second question for a GET upgrade: may the user `create` what the verb `get` was already allowed for? A WebSocket can only be
 * a GET, so without it `get pods/exec` alone, which reads like a harmless permission, would run commands.
 *
 * Behaves as kube-apiserver's gate AuthorizePodWebsocketUpgradeCreatePermission (1.35): asked for every GET on a streaming
 * subresource, upgrade or not, before the pod is looked up; the refusal carries the authorizer's bare reason, which with RBAC is empty.
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
