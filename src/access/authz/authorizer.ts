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
}

export interface Decision {
  readonly decision: "allow" | "deny" | "no-opinion";
  /** Shown to the user and in audit; may be empty. */
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
