import { badRequest, forbidden } from "@sluice/client/internal/api/status";
import { isRecord } from "@sluice/client/internal/api/status-body";
import type { ReviewResource } from "../../../api/read-only-server/review-resources.ts";
import type { UserInfo } from "../../user-info.ts";
import type { Authorizer } from "../authorizer.ts";
import { answerAccessReview } from "./self-subject-access-review.ts";

/** A posted review: a map of the right kind and version, otherwise unchecked. */
type PostedReview = Readonly<Record<string, unknown>>;

/**
 * Answers an authorized user's SelfSubjectAccessReview, SelfSubjectRulesReview or SelfSubjectReview
 * with its status. Throws StatusError 400 or 422 as the API server does.
 */
export async function answerReview(
  resource: ReviewResource,
  posted: unknown,
  user: UserInfo,
  authorizer: Authorizer,
): Promise<unknown> {
  const review = requireReview(resource, posted);
  const head = { kind: resource.kind, apiVersion: `${resource.group}/${resource.version}`, metadata: {} };
  switch (resource.kind) {
    case "SelfSubjectAccessReview":
      return { ...head, ...(await answerAccessReview(review, user, authorizer)) };
    case "SelfSubjectRulesReview":
      return { ...head, ...(await answerRulesReview(review, user, authorizer)) };
    case "SelfSubjectReview":
      return { ...head, status: { userInfo: userInfoOf(user) } };
    default:
      throw forbidden(resource.name, "", "this review is not answered here");
  }
}

function requireReview({ group, version, kind }: ReviewResource, posted: unknown): PostedReview {
  if (!isRecord(posted)) throw badRequest("couldn't get version/kind: a map is expected");
  const wanted = `${group}/${version}`;
  const { apiVersion = wanted, kind: postedKind = kind } = posted;
  if (apiVersion !== wanted || postedKind !== kind) {
    throw badRequest(`the object provided is unrecognized: ${wanted}, Kind=${kind} is expected`);
  }
  return posted;
}

async function answerRulesReview(review: PostedReview, user: UserInfo, authorizer: Authorizer) {
  const spec = isRecord(review.spec) ? review.spec : {};
  const namespace = typeof spec.namespace === "string" ? spec.namespace : "";
  if (namespace === "") throw badRequest("no namespace on request");
  const status = await authorizer.rulesFor?.(user, namespace);
  return { spec: {}, status: status ?? { resourceRules: [], nonResourceRules: [], incomplete: true } };
}

function userInfoOf({ name, uid, groups, extra }: UserInfo) {
  return {
    username: name,
    ...(uid !== "" && { uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}
