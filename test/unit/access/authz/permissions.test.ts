import { describe, expect, it } from "vitest";
import { StatusError } from "../../../../packages/client/src/api/status.ts";
import {
  type Attributes,
  type Authorizer,
  alwaysAllow,
  type Decision,
  requireCreatePermission,
  requirePermission,
} from "../../../../src/access/authz/authorizer.ts";
import { requestAttributes } from "../../../../src/access/authz/request-attributes.ts";

const user = { name: "u", uid: "1", groups: [], extra: {} };
const exec: Attributes = {
  user,
  verb: "get",
  isResourceRequest: true,
  namespace: "ns",
  apiGroup: "",
  apiVersion: "v1",
  resource: "pods",
  subresource: "exec",
  name: "web",
  path: "/api/v1/namespaces/ns/pods/web/exec",
};
const asked: Attributes[] = [];
const answering = (decision: Decision["decision"], reason = ""): Authorizer => ({
  authorize: async (attributes) => {
    asked.push(attributes);
    return { decision, reason };
  },
});
const refusal = async (work: Promise<void>) => {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StatusError);
  return (error as StatusError).status;
};

describe("requirePermission", () => {
  it.each<[Decision["decision"], string, Partial<Attributes>, string]>([
    [
      "deny",
      "",
      {},
      'pods "web" is forbidden: User "u" cannot get resource "pods/exec" in API group "" in the namespace "ns"',
    ],
    [
      "no-opinion",
      "RBAC: none",
      {},
      'pods "web" is forbidden: User "u" cannot get resource "pods/exec" in API group "" in the namespace "ns": RBAC: none',
    ],
    [
      "deny",
      "",
      { name: "", subresource: "", namespace: "", verb: "list", resource: "nodes" },
      'nodes is forbidden: User "u" cannot list resource "nodes" in API group "" at the cluster scope',
    ],
    [
      "deny",
      "",
      { isResourceRequest: false, path: "/version", name: "" },
      'forbidden: User "u" cannot get path "/version"',
    ],
  ])("%s %j %j", async (decision, reason, more, message) => {
    const status = await refusal(requirePermission(answering(decision, reason), { ...exec, ...more }));
    expect(status).toMatchObject({ code: 403, reason: "Forbidden", message });
  });

  it("passes what is allowed, and an authorizer's own error", async () => {
    await requirePermission(alwaysAllow, exec);
    const failing: Authorizer = { authorize: () => Promise.reject(new Error("webhook down")) };
    await expect(requirePermission(failing, exec)).rejects.toThrow("webhook down");
    await expect(requireCreatePermission(failing, exec, true)).rejects.toThrow("webhook down");
  });
});

describe("requireCreatePermission", () => {
  it.each<[Decision["decision"], string]>([
    ["deny", ""],
    ["deny", "because"],
    ["no-opinion", ""],
  ])("%s %j refuses with the bare reason", async (decision, reason) => {
    asked.length = 0;
    expect(await refusal(requireCreatePermission(answering(decision, reason), exec, true))).toEqual({
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: `pods "web" is forbidden: ${reason}`,
      reason: "Forbidden",
      details: { name: "web", kind: "pods" },
      code: 403,
    });
    expect(asked).toEqual([{ ...exec, verb: "create" }]);
  });

  it("asks nothing when the gate is off, or when create was the verb", async () => {
    asked.length = 0;
    await requireCreatePermission(answering("deny"), exec, false);
    await requireCreatePermission(answering("deny"), { ...exec, verb: "create" }, true);
    expect(asked).toEqual([]);
    await requireCreatePermission(answering("allow"), exec, true);
    expect(asked).toHaveLength(1);
  });
});

describe("requestAttributes", () => {
  it.each<[method: string, target: string, expected: string]>([
    ["GET", "/version", "get path /version"],
    ["POST", "/api", "post path /api"],
    ["GET", "/api/v1", "get path /api/v1"],
    ["GET", "/apis/apps/v1", "get path /apis/apps/v1"],
    ["GET", "/%zz", "get path /%zz"],
    ["GET", "/api/v1/pods", "list /v1 pods///"],
    ["GET", "/api/v1/pods?watch=1", "watch /v1 pods///"],
    ["GET", "/api/v1/watch/pods", "watch /v1 pods///"],
    ["POST", "/api/v1/watch/namespaces/ns/pods/web", "watch /v1 pods/ns/web/"],
    ["GET", "/apis/apps/v1/watch/namespaces/ns/deployments", "watch apps/v1 deployments/ns//"],
    ["GET", "/api/v1/watch/namespaces/ns", "watch /v1 namespaces/ns/ns/"],
    ["GET", "/api/v1/watch", "list /v1 watch///"],
    ["GET", "/api/v1/proxy/namespaces/ns/services/web/exec", "proxy /v1 services/ns/web/"],
    ["GET", "/api/v1/pods?watch=false", "list /v1 pods///"],
    ["GET", "/api/v1/pods?fieldSelector=metadata.name%3Dweb", "list /v1 pods//web/"],
    ["GET", "/api/v1/pods?fieldSelector=status.phase%3DRunning,metadata.name%3Dweb", "list /v1 pods//web/"],
    ["GET", "/api/v1/pods?fieldSelector=metadata.name%3Dw%5C,eb", "list /v1 pods//w,eb/"],
    ["GET", "/api/v1/pods?fieldSelector=metadata.name!%3Dweb", "list /v1 pods///"],
    ["GET", "/api/v1/pods?fieldSelector=metadata.name%3D..", "list /v1 pods///"],
    // An option that is malformed takes the name away.
    ["GET", "/api/v1/pods?limit=x&watch=1&fieldSelector=metadata.name%3Dweb", "watch /v1 pods///"],
    ["DELETE", "/api/v1/pods?fieldSelector=metadata.name%3Dweb", "deletecollection /v1 pods///"],
    ["POST", "/api/v1/pods?fieldSelector=metadata.name%3Dweb", "create /v1 pods///"],
    // Watched by its own name, it is read.
    ["GET", "/api/v1/namespaces/ns/secrets/s?watch=1", "get /v1 secrets/ns/s/"],
    ["GET", "/api/v1/namespaces/ns?watch=true", "get /v1 namespaces/ns/ns/"],
    ["constructor", "/api/v1/pods", " /v1 pods///"],
    ["GET", "/a%20b", "get path /a b"],
    ["GET", "/api/v1/namespaces/ns/pods/web", "get /v1 pods/ns/web/"],
    ["HEAD", "/api/v1/namespaces/ns/pods/web", "get /v1 pods/ns/web/"],
    ["GET", "/api/v1/namespaces/ns/pods/web/exec", "get /v1 pods/ns/web/exec"],
    ["POST", "/api/v1/namespaces/ns/pods/web/exec", "create /v1 pods/ns/web/exec"],
    ["PUT", "/api/v1/namespaces/ns/pods/web", "update /v1 pods/ns/web/"],
    ["PATCH", "/api/v1/nodes/n/status", "patch /v1 nodes//n/status"],
    ["DELETE", "/api/v1/namespaces/ns/pods/web", "delete /v1 pods/ns/web/"],
    ["DELETE", "/api/v1/namespaces/ns/pods", "deletecollection /v1 pods/ns//"],
    ["GET", "/api/v1/namespaces", "list /v1 namespaces///"],
    ["GET", "/api/v1/namespaces/ns", "get /v1 namespaces/ns/ns/"],
    ["PUT", "/api/v1/namespaces/ns/finalize", "update /v1 namespaces/ns/ns/finalize"],
    ["GET", "/apis/apps/v1/namespaces/ns/deployments/d", "get apps/v1 deployments/ns/d/"],
  ])("%s %s: %s", (method, target, expected) => {
    const url = new URL(target, "http://api");
    const found = requestAttributes(user, { method, path: url.pathname, query: url.searchParams });
    const { verb, isResourceRequest, apiGroup, apiVersion, resource, namespace, name, subresource, path } =
      found;
    const shown = isResourceRequest
      ? `${apiGroup}/${apiVersion} ${resource}/${namespace}/${name}/${subresource}`
      : `path ${path}`;
    expect(`${verb} ${shown}`).toBe(expected);
  });
});
