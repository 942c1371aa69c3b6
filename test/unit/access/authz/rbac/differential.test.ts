import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RbacAuthorizer } from "../../../../../src/access/authz/component.ts";
import { RbacIndex } from "../../../../../src/access/authz/rbac/rbac-index.ts";
import { rulesOfClusterRole } from "../../../../../src/access/authz/rbac/rbac-source.ts";
import type { PolicyRule, RbacObject } from "../../../../../src/api/rbac-objects.ts";
import { readObject } from "../../../../../src/api/strategy/read-object.ts";
import { naiveAllows } from "../../../../support/naive-rbac.ts";
import { asked } from "../../../../support/rbac-objects.ts";

const apiVersion = "rbac.authorization.k8s.io/v1" as const;
// Few words, so that they meet often.
const namespaces = ["ns1", "ns2"];
const names = ["a", "b", "c"];
const verbs = ["get", "list", "create"];
const resources = ["pods", "nodes"];
const subresources = ["exec", "attach"];
const groups = ["", "apps"];
const objectNames = ["web", "db"];
const people = ["alice", "bob", "system:serviceaccount:ns1:a", "system:serviceaccount:ns2:b"];
const teams = ["dev", "ops"];
const paths = ["/healthz", "/healthz/etcd", "/api", "/api/v1", "/"];
const labels = ["x", "y"];

const some = <T>(values: readonly T[], maxLength = 3) =>
  fc.array(fc.constantFrom(...values), { minLength: 1, maxLength });
const ruleResources = [...resources, "*", "*/exec", "*/attach", "pods/exec", "pods/attach", "pods/*"];

const resourceRule: fc.Arbitrary<PolicyRule> = fc.record(
  {
    verbs: some([...verbs, "*"]),
    apiGroups: some([...groups, "*"]),
    resources: some(ruleResources),
    resourceNames: fc.array(fc.constantFrom(...objectNames), { maxLength: 1 }),
  },
  { requiredKeys: ["verbs", "apiGroups", "resources"] },
);
const urlRule: fc.Arbitrary<PolicyRule> = fc.record({
  verbs: some([...verbs, "*"]),
  nonResourceURLs: some([...paths, "*", "/healthz*", "/healthz/*", "/api/*", "/*", "/h**", "/*/v1"]),
});
const labelsOf = fc.dictionary(fc.constantFrom(...labels), fc.constantFrom("1", "2"), { maxKeys: 2 });
const expression = fc
  .record({
    key: fc.constantFrom(...labels),
    operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist"),
    values: some(["1", "2"]),
  })
  .map(({ key, operator, values }) => ({ key, operator, ...(operator.endsWith("In") && { values }) }));
const selector = fc.record(
  { matchLabels: labelsOf, matchExpressions: fc.array(expression, { maxLength: 1 }) },
  { requiredKeys: [] },
);
const subject = fc.oneof(
  fc.constantFrom(...people).map((name) => ({ kind: "User", name })),
  fc.constantFrom(...teams).map((name) => ({ kind: "Group", name })),
  fc.record({
    kind: fc.constant("ServiceAccount"),
    name: fc.constantFrom(...names),
    namespace: fc.constantFrom(...namespaces),
  }),
);
const localServiceAccount = fc.constantFrom(...names).map((name) => ({ kind: "ServiceAccount", name }));

const role = fc
  .tuple(
    fc.constantFrom(...names),
    fc.constantFrom(...namespaces),
    fc.array(resourceRule, { minLength: 1, maxLength: 4 }),
  )
  .map(([name, namespace, rules]) => ({ apiVersion, kind: "Role", metadata: { name, namespace }, rules }));
const clusterRole = fc
  .tuple(
    fc.constantFrom(...names),
    labelsOf,
    fc.array(fc.oneof(resourceRule, urlRule), { minLength: 1, maxLength: 4 }),
    fc.option(fc.array(selector, { minLength: 1, maxLength: 2 }), { freq: 2, nil: undefined }),
  )
  .map(([name, own, rules, clusterRoleSelectors]) => ({
    apiVersion,
    kind: "ClusterRole",
    metadata: { name, labels: own },
    rules,
    ...(clusterRoleSelectors && { aggregationRule: { clusterRoleSelectors } }),
  }));
const roleBinding = fc
  .tuple(
    fc.constantFrom(...names),
    fc.constantFrom(...namespaces),
    fc.record({ kind: fc.constantFrom("Role", "ClusterRole"), name: fc.constantFrom(...names) }),
    fc.array(fc.oneof(subject, localServiceAccount), { minLength: 1, maxLength: 4 }),
  )
  .map(([name, namespace, roleRef, subjects]) => ({
    apiVersion,
    kind: "RoleBinding",
    metadata: { name, namespace },
    roleRef,
    subjects,
  }));
const clusterRoleBinding = fc
  .tuple(
    fc.constantFrom(...names),
    fc.constantFrom(...names),
    fc.array(subject, { minLength: 1, maxLength: 4 }),
  )
  .map(([name, roleName, subjects]) => ({
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata: { name },
    roleRef: { kind: "ClusterRole", name: roleName },
    subjects,
  }));

const keyOf = ({ kind, metadata }: { kind: string; metadata: { name: string; namespace?: string } }) =>
  `${kind}/${metadata.namespace}/${metadata.name}`;
const manifests = fc.uniqueArray(fc.oneof(role, clusterRole, roleBinding, clusterRoleBinding), {
  selector: keyOf,
  minLength: 10,
  maxLength: 18,
});

const person = fc.record({
  name: fc.constantFrom(...people, "stranger"),
  groups: fc.subarray([...teams, "system:authenticated"]),
});
const resourceRequest = fc.record({
  user: person,
  verb: fc.constantFrom(...verbs, "delete"),
  namespace: fc.constantFrom("", ...namespaces),
  apiGroup: fc.constantFrom(...groups),
  resource: fc.constantFrom(...resources),
  subresource: fc.constantFrom("", ...subresources),
  name: fc.constantFrom("", ...objectNames),
});
const urlRequest = fc.record({
  user: person,
  verb: fc.constantFrom(...verbs),
  path: fc.constantFrom(...paths, "/other"),
  isResourceRequest: fc.constant(false),
  resource: fc.constant(""),
});
const requests = fc.array(fc.oneof({ weight: 4, arbitrary: resourceRequest }, urlRequest), {
  minLength: 8,
  maxLength: 8,
});

describe("RBAC against a naive second evaluator", () => {
  it("agrees on thousands of random roles, bindings and requests", async () => {
    let asks = 0;
    let allowed = 0;
    const property = fc.asyncProperty(manifests, requests, async (values, asking) => {
      const objects = values.map((value) => {
        const reading = readObject(value);
        if (!reading.isValid) throw new Error(JSON.stringify(reading.problems));
        return reading.object as RbacObject;
      });
      const index = new RbacIndex(objects, rulesOfClusterRole);
      const authorizer = new RbacAuthorizer(() => index);
      for (const request of asking) {
        const attributes = asked({ ...request, user: { ...request.user, uid: "", extra: {} } });
        const expected = naiveAllows(objects, attributes);
        const { decision } = await authorizer.authorize(attributes);
        asks += 1;
        if (expected) allowed += 1;
        expect({ request, allowed: decision === "allow" }).toEqual({ request, allowed: expected });
      }
    });
    await fc.assert(property, { numRuns: 1_500, seed: 4006 });
    // Both answers were there often enough to mean something.
    expect(asks).toBe(12_000);
    expect(allowed).toBeGreaterThan(1_000);
    expect(allowed).toBeLessThan(11_000);
  });
});
