import { describe, expect, it } from "vitest";
import { StatusError } from "../../../../../packages/client/src/api/status.ts";
import type { Attributes, Authorizer } from "../../../../../src/access/authz/authorizer.ts";
import { answerReview } from "../../../../../src/access/authz/reviews/answer-review.ts";
import { reviewAt } from "../../../../../src/api/read-only-server/resources.ts";

const alice = { name: "alice", uid: "u1", groups: ["dev"], extra: { scope: ["x"] } };

async function answer(name: string, posted: unknown, authorizer: Authorizer = saying("allow")) {
  const group = name === "selfsubjectreviews" ? "authentication.k8s.io" : "authorization.k8s.io";
  const resource = reviewAt(`/apis/${group}/v1/${name}`);
  if (resource === undefined) throw new Error("no such review");
  try {
    return (await answerReview(resource, posted, alice, authorizer)) as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { code: error.code, message: error.message };
  }
}

const asked: Attributes[] = [];
function saying(decision: "allow" | "deny" | "no-opinion", reason = "", error?: string): Authorizer {
  return {
    authorize: async (attributes) => {
      asked.push(attributes);
      return { decision, reason, ...(error !== undefined && { error }) };
    },
  };
}

describe("SelfSubjectAccessReview", () => {
  const spec = {
    resourceAttributes: { namespace: "ns", verb: "get", resource: "pods", subresource: "exec", name: "web" },
  };

  it.each([
    [saying("allow", "because"), { allowed: true, reason: "because" }],
    [saying("no-opinion"), { allowed: false }],
    [saying("deny", "never"), { allowed: false, denied: true, reason: "never" }],
    [saying("no-opinion", "", "oops"), { allowed: false, evaluationError: "oops" }],
  ])("answers with the decision", async (authorizer, status) => {
    expect(await answer("selfsubjectaccessreviews", { spec }, authorizer)).toEqual({
      kind: "SelfSubjectAccessReview",
      apiVersion: "authorization.k8s.io/v1",
      metadata: {},
      spec,
      status,
    });
  });

  it("asks about the caller, whatever else the spec says", async () => {
    const sly = { ...spec, user: "root", groups: ["system:masters"] };
    await answer("selfsubjectaccessreviews", { spec: sly });
    expect(asked.at(-1)).toEqual({
      user: alice,
      isResourceRequest: true,
      namespace: "ns",
      verb: "get",
      apiGroup: "",
      apiVersion: "",
      resource: "pods",
      subresource: "exec",
      name: "web",
      path: "",
    });
    await answer("selfsubjectaccessreviews", {
      spec: { nonResourceAttributes: { path: "/x", verb: "get" } },
    });
    expect(asked.at(-1)).toMatchObject({ isResourceRequest: false, path: "/x", verb: "get", user: alice });
  });

  it.each([
    [{}, 422, "exactly one of nonResourceAttributes or resourceAttributes must be specified"],
    [
      { spec: { resourceAttributes: {}, nonResourceAttributes: {} } },
      422,
      "cannot be specified in combination with resourceAttributes",
    ],
    [{ spec: { resourceAttributes: { verb: 7 } } }, 400, "spec.resourceAttributes.verb must be a string"],
    [{ spec: { resourceAttributes: [] } }, 400, "spec.resourceAttributes must be a map"],
    [{ spec: [] }, 400, "spec must be a map"],
    [[], 400, "a map is expected"],
    [null, 400, "a map is expected"],
    [{ kind: "Pod", spec }, 400, "is unrecognized"],
    [{ apiVersion: "authorization.k8s.io/v1beta1", spec }, 400, "is unrecognized"],
  ])("%j is refused", async (posted, code, message) => {
    expect(await answer("selfsubjectaccessreviews", posted)).toEqual({
      code,
      message: expect.stringContaining(message),
    });
  });
});

describe("the other reviews", () => {
  it("SelfSubjectRulesReview lists, needs a namespace, and admits that it can not", async () => {
    const rules = { resourceRules: [], nonResourceRules: [], incomplete: false };
    const listing: Authorizer = { ...saying("allow"), rulesFor: async () => rules };
    const posted = { spec: { namespace: "ns" } };
    expect(await answer("selfsubjectrulesreviews", posted, listing)).toMatchObject({ status: rules });
    expect(await answer("selfsubjectrulesreviews", posted)).toMatchObject({ status: { incomplete: true } });
    expect(await answer("selfsubjectrulesreviews", {}, listing)).toEqual({
      code: 400,
      message: "no namespace on request",
    });
  });

  it("SelfSubjectReview tells who one is", async () => {
    expect(await answer("selfsubjectreviews", {})).toMatchObject({
      kind: "SelfSubjectReview",
      apiVersion: "authentication.k8s.io/v1",
      status: { userInfo: { username: "alice", uid: "u1", groups: ["dev"], extra: { scope: ["x"] } } },
    });
  });
});
