import { goQuote } from "@sluice/client/internal/api/go-json";
import type { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { Attributes, Authorizer } from "./authorizer.ts";

/**
 * Throws StatusError 403 in the API server's words unless the authorizer allows the request. Passes
 * an authorizer's error on.
 */
export async function requirePermission(
  authorizer: Pick<Authorizer, "authorize">,
  attributes: Attributes,
): Promise<void> {
  const { decision, reason } = await authorizer.authorize(attributes);
  if (decision !== "allow") throw forbiddenTo(attributes, reason);
}

/** The API server's 403 for these attributes, with `reason` unless it is empty. */
export function forbiddenTo(attributes: Attributes, reason: string): StatusError {
  const sentence = refusalOf(attributes);
  const { resource, apiGroup, name, isResourceRequest } = attributes;
  const subject = isResourceRequest ? [resource, apiGroup].filter((part) => part !== "").join(".") : "";
  return WIRE_ERRORS.forbidden.streaming({
    resource: subject,
    name,
    reason: reason === "" ? sentence : `${sentence}: ${reason}`,
  });
}

/** `User "u" cannot get resource "pods/exec" in API group "" in the namespace "ns"`. */
function refusalOf(attributes: Attributes): string {
  const { user, verb, path, resource, subresource, apiGroup, namespace, isResourceRequest } = attributes;
  if (!isResourceRequest) return `User ${goQuote(user.name)} cannot ${verb} path ${goQuote(path)}`;
  const target = goQuote(subresource === "" ? resource : `${resource}/${subresource}`);
  const scope = namespace === "" ? "at the cluster scope" : `in the namespace ${goQuote(namespace)}`;
  return `User ${goQuote(user.name)} cannot ${verb} resource ${target} in API group ${goQuote(apiGroup)} ${scope}`;
}

/**
 * Requires `create` for every GET on a streaming subresource, before the pod is looked up: a
 * WebSocket is a GET, so `get pods/exec` alone would run commands (kubernetes#78741). Follows
 * kube-apiserver's gate AuthorizePodWebsocketUpgradeCreatePermission; the refusal has the
 * authorizer's bare reason.
 */
export async function requireCreatePermission(
  authorizer: Pick<Authorizer, "authorize">,
  attributes: Attributes,
  isGateEnabled: boolean,
): Promise<void> {
  if (!isGateEnabled || attributes.verb === "create") return;
  const { decision, reason } = await authorizer.authorize({ ...attributes, verb: "create" });
  if (decision !== "allow") throw WIRE_ERRORS.forbidden.streaming({ ...attributes, reason });
}
