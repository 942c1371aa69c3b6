import { goQuote } from "@sluice/client/internal/api/go-json";
import type { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { UserInfo } from "../user-info.ts";

/** The request to authorize: Kubernetes' authorizer.Attributes. */
export interface Attributes {
  readonly user: UserInfo;
  /** `get`, `list`, `watch`, `create`, ...; for non-resource requests the HTTP method in lower case. */
  readonly verb: string;
  readonly isResourceRequest: boolean;
  readonly namespace: string;
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly path: string;
  /** Calls the listener when the client is gone; at once if it already is. Decides nothing. */
  readonly onGone?: ((listener: () => void) => void) | undefined;
}

export interface Decision {
  readonly decision: "allow" | "deny" | "no-opinion";
  /** Shown to the user and in the audit log; may be empty. */
  readonly reason: string;
  /**
   * Why the decision is incomplete, in words for the user. Never allows anything; reviews return it
   * as their evaluationError.
   */
  readonly error?: string;
}

/**
 * The interface of every authorizer. Throws only if it cannot decide; then the request is denied.
 */
export interface Authorizer {
  authorize(attributes: Attributes): Promise<Decision>;
  /** The user's listable rules in the namespace. Absent if there is nothing to list. */
  rulesFor?(user: UserInfo, namespace: string): Promise<UserRules>;
}

/** A request, as far as its questions depend on it. */
interface AskingRequest {
  readonly source?: { readonly onGone?: Attributes["onGone"] } | undefined;
  readonly trail?: { watching(authorizer: Authorizer): Pick<Authorizer, "authorize"> } | undefined;
}

/**
 * The authorizer of one request: audited, and whose questions leave their queue when the request's
 * client is gone.
 */
export function authorizerFor(
  { source, trail }: AskingRequest,
  authorizer: Authorizer,
): Pick<Authorizer, "authorize"> {
  const watched = trail?.watching(authorizer) ?? authorizer;
  const { onGone } = source ?? {};
  if (onGone === undefined) return watched;
  return { authorize: (attributes) => watched.authorize({ ...attributes, onGone }) };
}

/** The answer to a SelfSubjectRulesReview. */
export interface UserRules {
  readonly resourceRules: readonly ResourceRule[];
  readonly nonResourceRules: readonly NonResourceRule[];
  /** True if an authorizer may allow more than the list. */
  readonly incomplete: boolean;
  readonly evaluationError?: string;
}

export interface ResourceRule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
}

export interface NonResourceRule {
  readonly verbs: readonly string[];
  readonly nonResourceURLs: readonly string[];
}

const EVERYTHING: UserRules = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  incomplete: false,
};
const NOTHING: UserRules = { resourceRules: [], nonResourceRules: [], incomplete: false };

/** `--authorization-mode=AlwaysAllow`. */
export const alwaysAllow: Authorizer = {
  authorize: async () => ({ decision: "allow", reason: "" }),
  rulesFor: async () => EVERYTHING,
};

/**
 * `--authorization-mode=AlwaysDeny`: as in kube-apiserver it has no opinion and a reason, so that a
 * later mode may allow.
 */
export const alwaysDeny: Authorizer = {
  authorize: async () => ({ decision: "no-opinion", reason: "Everything is forbidden." }),
  rulesFor: async () => NOTHING,
};

export const SUPERUSER_GROUP = "system:masters";

/** Members of system:masters may do everything; as in kube-apiserver they come before all modes. */
export const superusers: Authorizer = {
  authorize: async ({ user }) => ({
    decision: user.groups.includes(SUPERUSER_GROUP) ? "allow" : "no-opinion",
    reason: "",
  }),
  rulesFor: async (user) => (user.groups.includes(SUPERUSER_GROUP) ? EVERYTHING : NOTHING),
};

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
