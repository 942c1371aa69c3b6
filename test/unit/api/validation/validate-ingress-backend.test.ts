import { describe, expect, it } from "vitest";
import { fieldErrorText } from "../../../../src/api/field-errors.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { classOf, classStrategy, texts } from "../example-ingress.ts";

const gates = FeatureGates.defaults;
const controller = "example.com/ingress";
const reference = { apiGroup: "example.com", kind: "Config", name: "external" };
const domainPrefixed = 'must be a domain-prefixed path (such as "acme.io/foo")';
const badPath = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";

function errorsOf(spec: object, metadata: object = {}): string[] {
  return classStrategy.validateCreate(classOf(spec, metadata), gates).map(fieldErrorText);
}

/** After pkg/apis/networking/validation/validation_test.go. */
describe("TestValidateIngressClass", () => {
  it.each([
    { controller },
    { controller: "a/b" },
    { controller: "example.com/a/b-c._~%!$&'()*+,;=:" },
    { controller: `example.com/${"a".repeat(238)}` },
    { controller, parameters: reference },
    { controller, parameters: { kind: "Config", name: "x" } },
    { controller, parameters: { ...reference, scope: "Namespace", namespace: "ns" } },
  ])("accepts %j", (spec) => {
    expect(errorsOf(spec)).toEqual([]);
  });

  const c = "spec.controller";
  const p = "spec.parameters";
  const long = `example.com/${"a".repeat(239)}`;
  const rows: [spec: object, ...errors: string[]][] = [
    [{}, `${c}: Required value`],
    [{ controller: long }, `${c}: Too long: may not be more than 250 bytes`],
    [{ controller: "noslash" }, `${c}: Invalid value: "noslash": ${domainPrefixed}`],
    [{ controller: "/a" }, `${c}: Invalid value: "/a": ${domainPrefixed}`],
    [{ controller: "a.b/" }, `${c}: Invalid value: "a.b/": ${domainPrefixed}`],
    [{ controller: "A_b/c" }, `${c}: Invalid value: "A_b": ${texts.subdomain}`],
    [{ controller: "a.b/c d" }, `${c}: Invalid value: "c d": ${badPath}`],
    [{ controller, parameters: {} }, `${p}.kind: Required value`, `${p}.name: Required value`],
    [
      { controller, parameters: { ...reference, apiGroup: "A" } },
      `${p}.apiGroup: Invalid value: "A": ${texts.subdomain}`,
    ],
    [
      { controller, parameters: { ...reference, kind: "a/b", name: "a%b" } },
      `${p}.kind: Invalid value: "a/b": may not contain '/'`,
      `${p}.name: Invalid value: "a%b": may not contain '%'`,
    ],
    [
      { controller, parameters: { ...reference, scope: "bad" } },
      `${p}.scope: Unsupported value: "bad": supported values: "Cluster", "Namespace"`,
    ],
    [
      { controller, parameters: { ...reference, scope: "Cluster", namespace: "ns" } },
      `${p}.namespace: Forbidden: \`parameters.scope\` is set to 'Cluster'`,
    ],
    [
      { controller, parameters: { ...reference, namespace: "" } },
      `${p}.namespace: Forbidden: \`parameters.scope\` is set to 'Cluster'`,
    ],
    [
      { controller, parameters: { ...reference, scope: "Namespace" } },
      `${p}.namespace: Required value: \`parameters.scope\` is set to 'Namespace'`,
    ],
    [
      { controller, parameters: { ...reference, scope: "Namespace", namespace: "A" } },
      `${p}.namespace: Invalid value: "A": ${texts.label}`,
    ],
    [
      { controller, parameters: { ...reference, scope: "Namespace", namespace: "" } },
      `${p}.namespace: Invalid value: "": ${texts.label}`,
    ],
  ];
  it.each(rows)("refuses %j", (spec, ...errors) => {
    expect(errorsOf(spec)).toEqual(errors);
  });

  it("refuses an absent scope where nothing was defaulted", () => {
    const bare = { ...classOf({ controller }), spec: { controller, parameters: reference } };
    expect(classStrategy.validateCreate(bare, gates).map(fieldErrorText)).toEqual([
      `${p}.scope: Required value`,
    ]);
  });

  it("refuses a bad name, and never reads the annotation", () => {
    expect(errorsOf({ controller }, { name: "A" })).toEqual([
      `metadata.name: Invalid value: "A": ${texts.subdomain}`,
    ]);
    const annotations = { "ingressclass.kubernetes.io/is-default-class": "perhaps" };
    expect(errorsOf({ controller }, { annotations })).toEqual([]);
  });
});

describe("TestValidateIngressClassUpdate", () => {
  const update = (next: object, old: object) =>
    classStrategy.validateUpdate(classOf(next), classOf(old), gates).map(fieldErrorText);

  it("the controller stays", () => {
    expect(update({ controller: "a.b/other" }, { controller })).toEqual([
      'spec.controller: Invalid value: "a.b/other": field is immutable',
    ]);
  });

  it("parameters come, change and go", () => {
    const other = { ...reference, name: "internal", scope: "Namespace", namespace: "ns" };
    expect(update({ controller, parameters: reference }, { controller })).toEqual([]);
    expect(update({ controller, parameters: other }, { controller, parameters: reference })).toEqual([]);
    expect(update({ controller }, { controller, parameters: other })).toEqual([]);
  });
});

/** Kubernetes checks the same twice, by tags and by hand; here there is one check. */
describe("TestDeclarativeValidateParameter", () => {
  it("kind and name are required on create and update", () => {
    const errors = [`spec.parameters.kind: Required value`];
    expect(errorsOf({ controller, parameters: { ...reference, kind: "" } })).toEqual(errors);
    const [next, old] = [{ ...reference, kind: "" }, reference].map((parameters) =>
      classOf({ controller, parameters }),
    );
    if (next && old)
      expect(classStrategy.validateUpdate(next, old, gates).map(fieldErrorText)).toEqual(errors);
  });
});

describe("TestSetDefaultsForIngressClassParametersReference", () => {
  it("the scope of parameters is Cluster unless it is given", () => {
    expect(classOf({ controller }).spec).toEqual({ controller });
    expect(classOf({ controller, parameters: reference }).spec?.parameters?.scope).toBe("Cluster");
    const namespaced = { ...reference, scope: "Namespace" };
    expect(classOf({ controller, parameters: namespaced }).spec?.parameters).toEqual(namespaced);
  });
});
