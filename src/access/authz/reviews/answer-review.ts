import { badRequest, forbidden } from "@sluice/client/internal/api/status";
import { isRecord } from "@sluice/client/internal/api/status-body";
import { invalidObject, invalidValue, required } from "../../../api/field-errors.ts";
import type { ReviewResource } from "../../../api/read-only-server/resources.ts";
import type { UserInfo } from "../../user-info.ts";
import type { Attributes, Authorizer } from "../authorizer.ts";

/** A posted review: an object of the right kind and version, otherwise unchecked. */
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

type Fields = Readonly<Record<string, unknown>>;

/**
 * The `spec` and `status` of an answered SelfSubjectAccessReview. Throws StatusError 400 and 422.
 */
async function answerAccessReview(review: Fields, user: UserInfo, authorizer: Authorizer) {
  const spec = fieldsOf(review.spec, "spec") ?? {};
  const resource = fieldsOf(spec.resourceAttributes, "spec.resourceAttributes");
  const path = fieldsOf(spec.nonResourceAttributes, "spec.nonResourceAttributes");
  requireOne(resource, path);
  const attributes = resource === undefined ? pathAttributes(user, path ?? {}) : asked(user, resource);
  const { decision, reason, error } = await authorizer.authorize(attributes);
  return {
    spec,
    status: {
      allowed: decision === "allow",
      ...(decision === "deny" && { denied: true }),
      ...(reason !== "" && { reason }),
      ...(error !== undefined && { evaluationError: error }),
    },
  };
}

function requireOne(resource: Fields | undefined, path: Fields | undefined): void {
  if (resource !== undefined && path !== undefined) {
    const sentence = "cannot be specified in combination with resourceAttributes";
    throw invalidReview([invalidValue(["spec", "nonResourceAttributes"], path, sentence)]);
  }
  if (resource === undefined && path === undefined) {
    const sentence = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    throw invalidReview([required(["spec", "resourceAttributes"], sentence)]);
  }
}

function invalidReview(errors: Parameters<typeof invalidObject>[2]) {
  return invalidObject("SelfSubjectAccessReview.authorization.k8s.io", "", errors);
}

function asked(user: UserInfo, fields: Fields): Attributes {
  const text = (name: string) => textOf(fields[name], `spec.resourceAttributes.${name}`);
  return {
    user,
    isResourceRequest: true,
    verb: text("verb"),
    namespace: text("namespace"),
    apiGroup: text("group"),
    apiVersion: text("version"),
    resource: text("resource"),
    subresource: text("subresource"),
    name: text("name"),
    path: "",
  };
}

function pathAttributes(user: UserInfo, fields: Fields): Attributes {
  const text = (name: string) => textOf(fields[name], `spec.nonResourceAttributes.${name}`);
  const none = { namespace: "", apiGroup: "", apiVersion: "", resource: "", subresource: "", name: "" };
  return { user, ...none, isResourceRequest: false, verb: text("verb"), path: text("path") };
}

function fieldsOf(value: unknown, name: string): Fields | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) throw badRequest(`${name} must be a map`);
  return value as Fields;
}

function textOf(value: unknown, name: string): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw badRequest(`${name} must be a string`);
  return value;
}
