import type { UserInfo } from "../authn/authenticator.ts";

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
  readonly reason: string;
}

/** The port behind which every way of deciding stands. Throws only when it cannot decide; nobody is allowed then. */
export interface Authorizer {
  authorize(attributes: Attributes): Promise<Decision>;
}

/** `--authorization-mode=AlwaysAllow`. */
export const alwaysAllow: Authorizer = {
  authorize: async () => ({ decision: "allow", reason: "" }),
};
