import type { Attributes, Decision } from "../authorizer.ts";

/** v1beta1 differs in one member of its spec: `group` in place of v1's `groups`. */
export type SubjectAccessReviewVersion = "v1" | "v1beta1";

/** The `spec` of an authorization.k8s.io SubjectAccessReview. Omits empty members, as Go does. */
export function reviewSpecOf(
  attributes: Attributes,
  version: SubjectAccessReviewVersion,
): Readonly<Record<string, unknown>> {
  const { user, verb, path, namespace, apiGroup, apiVersion, resource, subresource, name } = attributes;
  const groups = version === "v1beta1" ? { group: user.groups } : { groups: user.groups };
  const subject = { user: user.name, uid: user.uid, ...groups, extra: user.extra };
  const asked = attributes.isResourceRequest
    ? {
        resourceAttributes: filled({
          namespace,
          verb,
          group: apiGroup,
          version: apiVersion,
          resource,
          subresource,
          name,
        }),
      }
    : { nonResourceAttributes: filled({ path, verb }) };
  return { ...filled(subject), ...asked };
}

export function subjectAccessReview(
  spec: Readonly<Record<string, unknown>>,
  version: SubjectAccessReviewVersion,
): unknown {
  return { kind: "SubjectAccessReview", apiVersion: `authorization.k8s.io/${version}`, spec };
}

/** Reads the review's decision. Throws Error for an invalid status. */
export function decisionOfReview(body: unknown): Decision {
  const { status } = (body ?? {}) as { status?: { allowed?: unknown; denied?: unknown; reason?: unknown } };
  if (typeof status?.allowed !== "boolean") throw new Error("the answer has no status.allowed");
  const { allowed } = status;
  const denied = status.denied ?? false;
  if (typeof denied !== "boolean") throw new Error("the answer's status.denied is no boolean");
  // kube-apiserver refuses this contradictory answer, too.
  if (allowed && denied)
    throw new Error("webhook subject access review returned both allow and deny response");
  const reason = typeof status.reason === "string" ? status.reason.slice(0, MAX_REASON_CHARACTERS) : "";
  return { decision: allowed ? "allow" : denied ? "deny" : "no-opinion", reason };
}

/** The reason becomes part of an answer of at most 1,024 bytes. */
const MAX_REASON_CHARACTERS = 512;

function filled(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isEmpty = (value: unknown) =>
    value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}
