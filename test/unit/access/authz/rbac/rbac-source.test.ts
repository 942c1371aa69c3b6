import { describe, expect, it } from "vitest";
import { RbacAuthorizer } from "../../../../../src/access/authz/component.ts";
import { RbacSource } from "../../../../../src/access/authz/rbac/rbac-source.ts";
import type { KubernetesObject } from "../../../../../src/api/objects.ts";
import { type ClusterRole, type PolicyRule, RBAC_GROUP } from "../../../../../src/api/rbac-objects.ts";
import { ClusterStore } from "../../../../../src/cluster/cluster-store.ts";
import {
  asked,
  clusterRole,
  clusterRoleBinding,
  resourceRule,
  roleBinding,
  urlRule,
  user,
} from "../../../../support/rbac-objects.ts";

function start({ isLive = false } = {}) {
  const store = new ClusterStore(
    isLive ? { freshnessOf: () => ({ asOf: new Date(), problem: undefined }) } : {},
  );
  const source = new RbacSource(store);
  const authorizer = new RbacAuthorizer(() => source.current);
  const set = (...objects: KubernetesObject[]) => store.replaceAll(objects, new Date(0));
  const may = async (attributes: Parameters<typeof asked>[0]) =>
    (await authorizer.authorize(asked(attributes))).decision === "allow";
  return { source, set, may };
}

function labelled(name: string, aggregateTo: string, rule: PolicyRule): ClusterRole {
  const labels = { [`rbac.authorization.k8s.io/aggregate-to-${aggregateTo}`]: "true" };
  return { ...clusterRole(name, rule), metadata: { name, labels } };
}

const known = user("u", "system:authenticated");
const stranger = user("system:anonymous", "system:unauthenticated");
const path = (where: string, who = known) => ({
  user: who,
  isResourceRequest: false,
  path: where,
  verb: "get",
});

describe("the bootstrap policy", () => {
  it("lets everybody read health and version, and those who are known discover and ask about themselves", async () => {
    const { may } = start();
    for (const where of ["/healthz", "/livez", "/readyz", "/version", "/version/"]) {
      expect([await may(path(where)), await may(path(where, stranger))]).toEqual([true, true]);
    }
    for (const where of ["/api", "/api/v1", "/apis", "/apis/authorization.k8s.io/v1", "/openapi/v3"]) {
      expect([await may(path(where)), await may(path(where, stranger))]).toEqual([true, false]);
    }
    const review = { apiGroup: "authorization.k8s.io", resource: "selfsubjectaccessreviews", verb: "create" };
    expect(await may({ ...review, user: known })).toBe(true);
    expect(await may({ ...review, user: known, resource: "subjectaccessreviews" })).toBe(false);
    expect(await may({ user: known, resource: "pods" })).toBe(false);
    expect(await may({ user: user("root", "system:masters"), resource: "pods" })).toBe(true);
  });

  it("has the roles for people: view looks, edit acts on pods, admin hands out roles", async () => {
    const { set, may } = start();
    const roles = ["view", "edit", "admin"] as const;
    set(
      ...roles.map((role) => roleBinding("ns", role, `ClusterRole/${role}`, `User:${role}`)),
      labelled("widgets-of-view", "view", resourceRule("get|example.com|widgets")),
    );
    const whoMay = async (verb: string, what: string) => {
      const [resource = "", subresource = ""] = what.split("/");
      const apiGroup = resource === "widgets" ? "example.com" : resource.startsWith("role") ? RBAC_GROUP : "";
      const answers = await Promise.all(
        roles.map((role) =>
          may({ user: user(role), namespace: "ns", name: "x", verb, apiGroup, resource, subresource }),
        ),
      );
      return roles.filter((_, index) => answers[index]);
    };
    expect(await whoMay("get", "pods")).toEqual(["view", "edit", "admin"]);
    expect(await whoMay("get", "pods/log")).toEqual(["view", "edit", "admin"]);
    for (const subresource of ["exec", "attach", "portforward"]) {
      expect(await whoMay("get", `pods/${subresource}`)).toEqual(["edit", "admin"]);
      expect(await whoMay("create", `pods/${subresource}`)).toEqual(["edit", "admin"]);
    }
    expect(await whoMay("get", "secrets")).toEqual(["edit", "admin"]);
    expect(await whoMay("impersonate", "serviceaccounts")).toEqual(["edit", "admin"]);
    expect(await whoMay("create", "rolebindings")).toEqual(["admin"]);
    expect(await whoMay("get", "nodes/proxy")).toEqual([]);
    expect(await whoMay("get", "widgets")).toEqual(["view", "edit", "admin"]);
  });

  it("gives way to a manifest of the same kind and name", async () => {
    const { set, may } = start();
    set(clusterRole("system:public-info-viewer", urlRule("get", "/healthz")));
    expect([await may(path("/healthz", stranger)), await may(path("/version", stranger))]).toEqual([
      true,
      false,
    ]);
  });
});

describe("a live cluster", () => {
  it("gives back no built-in role that its administrator deleted", async () => {
    const { set, may } = start({ isLive: true });
    set(roleBinding("ns", "team", "ClusterRole/edit", "User:u"));
    const exec = { user: known, namespace: "ns", name: "p", verb: "create", apiGroup: "", resource: "pods" };
    expect(await may({ ...exec, subresource: "exec" })).toBe(false);
    expect(await may(path("/version", stranger))).toBe(false);
  });

  it("gives the rules that an aggregated role has stored, not those of its parts", async () => {
    const { set, may } = start({ isLive: true });
    const edit: ClusterRole = {
      ...clusterRole("edit", resourceRule("get||configmaps")),
      aggregationRule: {
        clusterRoleSelectors: [{ matchLabels: { "rbac.authorization.k8s.io/aggregate-to-edit": "true" } }],
      },
    };
    const part = labelled("part", "edit", resourceRule("get||pods"));
    set(edit, part, roleBinding("ns", "team", "ClusterRole/edit", "User:u"));
    const asks = { user: known, namespace: "ns", name: "x", verb: "get", apiGroup: "" };
    expect(await may({ ...asks, resource: "configmaps" })).toBe(true);
    expect(await may({ ...asks, resource: "pods" })).toBe(false);
  });
});

describe("edited manifests", () => {
  it("count from the next request on", async () => {
    const { set, may, source } = start();
    const asks = { user: known, resource: "pods" };
    expect(await may(asks)).toBe(false);
    set(clusterRole("r", resourceRule("get||pods")), clusterRoleBinding("b", "ClusterRole/r", "User:u"));
    expect(await may(asks)).toBe(true);
    set(clusterRole("r", resourceRule("list||pods")), clusterRoleBinding("b", "ClusterRole/r", "User:u"));
    expect(await may(asks)).toBe(false);
    const before = source.current;
    set(clusterRole("r", resourceRule("list||pods")), clusterRoleBinding("b", "ClusterRole/r", "User:u"), {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "n" },
    });
    // What is not RBAC does not build the index anew.
    expect(source.current).toBe(before);
  });
});
