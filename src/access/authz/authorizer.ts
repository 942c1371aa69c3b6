import type { UserInfo } from "../user-info.ts";

/** What is asked for permission: Kubernetes' authorizer.Attributes. */
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
  /** Shown to the user and in audit; empty when there is nothing to say. */
  readonly reason: string;
  /**
   * Why it could not be fully decided, in words fit for the user. It never allows anything; reviews show it as their
   * evaluationError.
   */
  readonly error?: string;
}

/** The interface of every authorizer. Throws only when it cannot decide; the request is denied then. */
export interface Authorizer {
  authorize(attributes: Attributes): Promise<Decision>;
  /** What the user may do in the namespace, as far as it can be listed. Absent: everything there is to list is nothing. */
  rulesFor?(user: UserInfo, namespace: string): Promise<UserRules>;
}

/** What a SelfSubjectRulesReview answers. */
export interface UserRules {
  readonly resourceRules: readonly ResourceRule[];
  readonly nonResourceRules: readonly NonResourceRule[];
  /** True where some authorizer may allow more than is listed. */
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

/** `--authorization-mode=AlwaysDeny`: like kube-apiserver's, it has no opinion and a reason, so that a later mode may allow. */
export const alwaysDeny: Authorizer = {
  authorize: async () => ({ decision: "no-opinion", reason: "Everything is forbidden." }),
  rulesFor: async () => NOTHING,
};

export const SUPERUSER_GROUP = "system:masters";

/** Members of system:masters may do everything, whatever the modes say. kube-apiserver puts it before them all. */
export const superusers: Authorizer = {
  authorize: async ({ user }) => ({
    decision: user.groups.includes(SUPERUSER_GROUP) ? "allow" : "no-opinion",
    reason: "",
  }),
  rulesFor: async (user) => (user.groups.includes(SUPERUSER_GROUP) ? EVERYTHING : NOTHING),
};
