import { badRequest } from "@sluice/client/internal/api/status";
import { invalidObject, invalidValue, required } from "../../../api/field-errors.ts";
import type { UserInfo } from "../../user-info.ts";
import type { Attributes, Authorizer } from "../authorizer.ts";

type Fields = Readonly<Record<string, unknown>>;

/** `spec` and `status` of an answered SelfSubjectAccessReview. Throws StatusError 400 and 422. */
export async function answerAccessReview(review: Fields, user: UserInfo, authorizer: Authorizer) {
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
