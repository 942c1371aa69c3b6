import type { Caller, Callers } from "./callers.ts";
import { isRecord } from "./json-patch.ts";

export interface AccessRequest {
  readonly user: string;
  readonly groups: readonly string[];
  readonly verb: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
}

export type Allows = (request: AccessRequest) => boolean;

/**
 * Answers TokenReview, SubjectAccessReview and SelfSubjectAccessReview; undefined for another path.
 */
export function answerReview(
  path: string,
  body: unknown,
  { callers, allows, caller }: { callers: Callers; allows: Allows; caller: Caller },
): object | undefined {
  const spec = isRecord(body) && isRecord(body.spec) ? body.spec : {};
  const answer = (status: object) => ({ ...(body as object), status });
  switch (path) {
    case "/apis/authentication.k8s.io/v1/tokenreviews": {
      const found = callers.ofToken(String(spec.token ?? ""));
      return answer(found ? { authenticated: true, user: found } : { authenticated: false });
    }
    case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
      return answer({ allowed: allows(accessOf(spec, String(spec.user ?? ""), spec.groups)) });
    case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
      return answer({ allowed: allows(accessOf(spec, caller.username, caller.groups)) });
    default:
      return undefined;
  }
}

function accessOf(spec: Record<string, unknown>, user: string, groups: unknown): AccessRequest {
  const attributes = isRecord(spec.resourceAttributes) ? spec.resourceAttributes : {};
  const text = (name: string) => String(attributes[name] ?? "");
  return {
    user,
    groups: Array.isArray(groups) ? groups.map(String) : [],
    verb: text("verb"),
    namespace: text("namespace"),
    resource: text("resource"),
    subresource: text("subresource"),
    name: text("name"),
  };
}
