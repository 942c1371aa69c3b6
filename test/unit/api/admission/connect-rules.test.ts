import { describe, expect, it } from "vitest";
import {
  type AdmissionObjects,
  type AdmissionResource,
  type ConnectRequest,
  connectRulesOf,
} from "../../../../src/api/admission/connect-rules.ts";

const EXEC: ConnectRequest = {
  namespace: "prod",
  pod: "web",
  subresource: "exec",
  namespaceLabels: { "kubernetes.io/metadata.name": "prod", tier: "gold" },
};

const rule = (more: object = {}) => ({
  operations: ["CONNECT"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["pods/exec"],
  ...more,
});

function objectsOf(entries: Partial<Record<AdmissionResource, object>>): AdmissionObjects {
  return Object.fromEntries(
    Object.entries(entries).map(([resource, object]) => [resource, new Map([["x", object]])]),
  );
}

const webhook = (more: object = {}) =>
  objectsOf({
    validatingwebhookconfigurations: { webhooks: [{ name: "w.example", rules: [rule()], ...more }] },
  });

const policy = (matchConstraints: object, matchResources?: object | null) =>
  objectsOf({
    validatingadmissionpolicies: { spec: { matchConstraints } },
    validatingadmissionpolicybindings: { spec: { policyName: "x", matchResources } },
  });

const judgedBy = (objects: AdmissionObjects, request: Partial<ConnectRequest> = {}) =>
  connectRulesOf(objects).find((candidate) => candidate.matches({ ...EXEC, ...request }))?.source;
const isJudged = (objects: AdmissionObjects, request?: Partial<ConnectRequest>) =>
  judgedBy(objects, request) !== undefined;

describe("a rule", () => {
  it.each([
    ["the subresource", {}, true],
    ["every operation", { operations: ["*"] }, true],
    ["another operation", { operations: ["CREATE", "UPDATE"] }, false],
    ["every group and version", { apiGroups: ["*"], apiVersions: ["*"] }, true],
    ["another group", { apiGroups: ["apps"] }, false],
    ["another version", { apiVersions: ["v2"] }, false],
    ["every subresource of pods", { resources: ["pods/*"] }, true],
    ["the subresource of everything", { resources: ["*/exec"] }, true],
    ["everything", { resources: ["*/*"] }, true],
    // A bare * means no subresource, as in rules.go.
    ["every resource", { resources: ["*"] }, false],
    ["pods themselves", { resources: ["pods"] }, false],
    ["another subresource", { resources: ["pods/attach", "pods/portforward"] }, false],
    ["namespaced objects", { scope: "Namespaced" }, true],
    ["every scope", { scope: "*" }, true],
    ["objects of the cluster", { scope: "Cluster" }, false],
    ["nothing, with Go's nulls", { operations: null, resources: null }, false],
  ])("for %s: %s", (_, more, expected) => {
    expect(isJudged(webhook({ rules: [rule(more)] }))).toBe(expected);
    expect(isJudged(policy({ resourceRules: [rule(more)] }))).toBe(expected);
  });

  it("for one subresource leaves the others alone", () => {
    const objects = webhook({ rules: [rule({ resources: ["pods/portforward"] })] });
    expect(
      ["exec", "attach", "portforward"].map((subresource) => isJudged(objects, { subresource })),
    ).toEqual([false, false, true]);
  });
});

describe("a webhook", () => {
  it("is named with its configuration", () => {
    expect(judgedBy(webhook())).toBe('ValidatingWebhookConfiguration "x", webhook "w.example"');
  });

  it("judges whatever its match conditions, which are CEL and not run", () => {
    expect(isJudged(webhook({ matchConditions: [{ name: "never", expression: "false" }] }))).toBe(true);
  });

  it("judges nothing without rules", () => {
    expect(isJudged(webhook({ rules: null }))).toBe(false);
    expect(isJudged(objectsOf({ mutatingwebhookconfigurations: { webhooks: null } }))).toBe(false);
  });

  // "An object that cannot have labels is not considered to match", says the API's reference.
  it("with an objectSelector never judges a CONNECT, whose object has no labels", () => {
    expect(isJudged(webhook({ objectSelector: { matchLabels: { a: "b" } } }))).toBe(false);
    expect(
      isJudged(webhook({ objectSelector: { matchExpressions: [{ key: "a", operator: "DoesNotExist" }] } })),
    ).toBe(false);
    expect(isJudged(webhook({ objectSelector: { matchLabels: null } }))).toBe(true);
  });

  it.each([
    [{ matchLabels: { tier: "gold" } }, true],
    [{ matchLabels: { tier: "silver" } }, false],
    [{ matchExpressions: [{ key: "tier", operator: "Exists" }] }, true],
    [
      { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "NotIn", values: ["prod"] }] },
      false,
    ],
    [{}, true],
    [null, true],
  ])("with the namespaceSelector %j judges by the namespace's labels: %s", (namespaceSelector, expected) => {
    expect(isJudged(webhook({ namespaceSelector }))).toBe(expected);
    expect(isJudged(webhook({ namespaceSelector }), { namespaceLabels: undefined })).toBe(true);
  });
});

describe("a policy", () => {
  it("has no effect without a binding, nor a binding without its policy", () => {
    const spec = { matchConstraints: { resourceRules: [rule()] } };
    expect(isJudged(objectsOf({ validatingadmissionpolicies: { spec } }))).toBe(false);
    expect(isJudged(objectsOf({ validatingadmissionpolicybindings: { spec: { policyName: "x" } } }))).toBe(
      false,
    );
    expect(judgedBy(policy(spec.matchConstraints))).toBe('ValidatingAdmissionPolicy "x"');
  });

  it("is narrowed by its binding", () => {
    const resourceRules = [rule()];
    const narrowed = (matchResources: object) => isJudged(policy({ resourceRules }, matchResources));
    expect(narrowed({ namespaceSelector: { matchLabels: { tier: "silver" } } })).toBe(false);
    expect(narrowed({ namespaceSelector: { matchLabels: { tier: "gold" } } })).toBe(true);
    expect(narrowed({ resourceRules: [rule({ resources: ["pods/attach"] })] })).toBe(false);
    expect(narrowed({ objectSelector: { matchLabels: { a: "b" } } })).toBe(false);
  });

  it("without rules is about everything", () => {
    expect(isJudged(policy({}))).toBe(true);
    expect(isJudged(policy({ resourceRules: null }, null))).toBe(true);
  });

  it("does not judge what it excludes, nor pods of other names", () => {
    expect(isJudged(policy({ resourceRules: [rule()], excludeResourceRules: [rule()] }))).toBe(false);
    const named = policy({ resourceRules: [rule({ resourceNames: ["db"] })] });
    expect([isJudged(named), isJudged(named, { pod: "db" })]).toEqual([false, true]);
    const others = policy({ excludeResourceRules: [rule({ resourceNames: ["db"] })] });
    expect([isJudged(others), isJudged(others, { pod: "db" })]).toEqual([true, false]);
  });

  it("that mutates counts as one that validates", () => {
    const objects = objectsOf({
      mutatingadmissionpolicies: { spec: { matchConstraints: { resourceRules: [rule()] } } },
      mutatingadmissionpolicybindings: { spec: { policyName: "x" } },
    });
    expect(judgedBy(objects)).toBe('MutatingAdmissionPolicy "x"');
  });
});
