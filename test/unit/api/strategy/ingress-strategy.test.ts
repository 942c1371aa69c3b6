import { describe, expect, it } from "vitest";
import type { ApiObject } from "../../../../src/api/api-object.ts";
import { fieldErrorText } from "../../../../src/api/field-errors.ts";
import type { Ingress } from "../../../../src/api/networking-objects.ts";
import { prepareUpdate } from "../../../../src/api/strategy/read-object.ts";
import type { Strategy } from "../../../../src/api/strategy/strategy.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { prepareCreate, prepareStatusUpdate } from "../../../support/api-server/prepare-write.ts";
import { statusUpdateErrors } from "../../../support/api-server/status-strategies.ts";
import {
  backend,
  classOf,
  classStrategy,
  createErrors,
  ingressOf,
  ingressStrategy,
  ingressWithPath,
  strictNames,
  texts,
  updateErrors,
} from "../example-ingress.ts";

const gates = FeatureGates.defaults;
const status = { loadBalancer: { ingress: [{ ip: "10.0.0.1" }] } };
const stored: Ingress = {
  ...ingressOf({ defaultBackend: backend }, { uid: "1", generation: 4 }),
  status,
};

describe("TestIngressStrategy", () => {
  it("is namespaced", () => {
    expect(ingressStrategy).toMatchObject({ isNamespaced: true, resource: "ingresses" });
  });

  it("a create clears the status and begins at generation 1", () => {
    const { object, errors } = prepareCreate(ingressStrategy as Strategy, stored, gates);
    expect(errors).toEqual([]);
    expect(object).toMatchObject({ status: { loadBalancer: {} }, metadata: { generation: 1 } });
  });

  it("an update keeps the status and counts changes of the spec only", () => {
    const update = (next: ApiObject) =>
      prepareUpdate(ingressStrategy as Strategy, next, stored, gates).object;
    const other = { ...stored, spec: { defaultBackend: backend, ingressClassName: "x" }, status: {} };
    expect(update(other)).toMatchObject({ status, metadata: { generation: 5 } });
    const labelled = { ...stored, metadata: { ...stored.metadata, labels: { a: "b" }, generation: 99 } };
    expect(update(labelled)).toMatchObject({ metadata: { generation: 4, labels: { a: "b" } } });
    const sameMeaning = { ...stored, spec: { defaultBackend: backend, rules: [], tls: [] } };
    expect(update(sameMeaning)).toMatchObject({ metadata: { generation: 4 } });
  });

  it("warns of the annotation where the field is not set", () => {
    const annotations = { "kubernetes.io/ingress.class": "nginx" };
    const warning =
      "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead";
    const annotated = ingressOf({ defaultBackend: backend }, { annotations });
    const both = ingressOf({ defaultBackend: backend, ingressClassName: "nginx" }, { annotations });
    expect(ingressStrategy.warnings(annotated)).toEqual([warning]);
    expect(prepareCreate(ingressStrategy as Strategy, annotated, gates).warnings).toEqual([warning]);
    expect(ingressStrategy.warnings(both)).toEqual([]);
    expect(ingressStrategy.warnings(stored)).toEqual([]);
    expect(prepareUpdate(ingressStrategy as Strategy, annotated, stored, gates).warnings).toEqual([]);
  });
});

describe("TestIngressStatusStrategy", () => {
  it("keeps everything but the status", () => {
    const next = { ...stored, spec: {}, status: { loadBalancer: { ingress: [{ hostname: "a.b" }] } } };
    const write = prepareStatusUpdate(ingressStrategy as Strategy, next, stored);
    expect(write?.errors).toEqual([]);
    expect(write?.object).toEqual({ ...stored, status: next.status });
  });
});

describe("TestValidateIngressStatusUpdate", () => {
  const errorsOf = (...ingress: Record<string, string>[]) => {
    const next = { ...stored, status: { loadBalancer: { ingress } } };
    return statusUpdateErrors(next, stored).map(fieldErrorText);
  };
  const at = (field: string) => `status.loadBalancer.ingress[0].${field}`;

  it("takes addresses and names, several and both", () => {
    expect(
      errorsOf({ ip: "127.0.0.1", hostname: "foo.com" }, { ip: "2001:db8::1" }, { ip: "010.0.0.1" }),
    ).toEqual([]);
    expect(errorsOf({ hostname: "foo.com" }, {})).toEqual([]);
  });

  it.each(["abcd", "127.0.0.256", "1.2.3", "fe80::1%eth0"])("refuses the address %s", (ip) => {
    expect(errorsOf({ ip })).toEqual([
      `${at("ip")}: Invalid value: "${ip}": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
    ]);
  });

  it("refuses names that are none", () => {
    expect(errorsOf({ hostname: "127.0.0.1" })).toEqual([
      `${at("hostname")}: Invalid value: "127.0.0.1": must be a DNS name, not an IP address`,
    ]);
    expect(errorsOf({ hostname: "a_b" })).toEqual([
      `${at("hostname")}: Invalid value: "a_b": ${texts.subdomain}`,
    ]);
  });
});

describe("TestValidateIngressUpdate", () => {
  const pathError = (text: string) => `spec.rules[0].http.paths[0].path: Invalid value: ${text}`;
  const withSecret = (secretName: string) =>
    ingressOf({ defaultBackend: backend, tls: [{ secretName }, { secretName: "good" }] });

  it("the class may change, go, and come", () => {
    const classed = (name?: string) =>
      ingressOf({ defaultBackend: backend, ...(name !== undefined && { ingressClassName: name }) });
    expect(updateErrors(classed("b"), classed("a"))).toEqual([]);
    expect(updateErrors(classed(), classed("a"))).toEqual([]);
    expect(updateErrors(classed("a"), classed())).toEqual([]);
  });

  it("annotation and field may come to differ", () => {
    const annotations = { "kubernetes.io/ingress.class": "foo" };
    const next = ingressOf({ defaultBackend: backend, ingressClassName: "bar" }, { annotations });
    expect(updateErrors(next, stored).filter((text) => !text.startsWith("metadata"))).toEqual([]);
  });

  it("ratchet: bad names of secrets may stay, and more may come, where one is stored", () => {
    expect(updateErrors(withSecret("name/path"), withSecret("name/path"))).toEqual([]);
    expect(updateErrors(withSecret("other/path"), withSecret("name/path"))).toEqual([]);
    expect(updateErrors(withSecret("name/path"), withSecret("good"))).toEqual([
      `spec.tls[0].secretName: Invalid value: "name/path": ${texts.subdomain}`,
    ]);
  });

  it("ratchet: bad rules under wildcard hosts may stay, where one is stored", () => {
    const bad = ingressWithPath({ path: "foo" }, "*.bar.com");
    const good = ingressWithPath({ path: "/foo" }, "*.bar.com");
    expect(updateErrors(bad, bad)).toEqual([]);
    expect(updateErrors(ingressWithPath({ path: "other" }, "*.bar.com"), bad)).toEqual([]);
    expect(updateErrors(bad, good)).toEqual([pathError('"foo": must be an absolute path')]);
  });

  it("ratchet: it is no excuse for rules under other hosts", () => {
    const bad = ingressWithPath({ path: "foo" }, "*.bar.com");
    expect(updateErrors(ingressWithPath({ path: "foo" }, "bar.com"), bad)).toEqual([
      pathError('"foo": must be an absolute path'),
    ]);
    const oldBad = ingressWithPath({ path: "foo" }, "bar.com");
    expect(updateErrors(oldBad, oldBad)).toEqual([pathError('"foo": must be an absolute path')]);
  });

  it("ratchet: a service's name that begins with a digit may stay where the gate is off", () => {
    const digit = ingressOf({ defaultBackend: { service: { name: "1a", port: { number: 1 } } } });
    const plain = ingressOf({ defaultBackend: backend });
    expect(updateErrors(digit, digit, strictNames)).toEqual([]);
    expect(updateErrors(digit, plain, strictNames)).toEqual([
      `spec.defaultBackend.service.name: Invalid value: "1a": ${texts.dns1035}`,
    ]);
  });

  it("backends may change their kind, paths their type", () => {
    const resource = ingressOf({ defaultBackend: { resource: { apiGroup: "a.b", kind: "k", name: "n" } } });
    expect(updateErrors(resource, ingressOf({ defaultBackend: backend }))).toEqual([]);
    expect(updateErrors(ingressOf({ defaultBackend: backend }), resource)).toEqual([]);
    const free = ingressWithPath({ path: "//", pathType: "ImplementationSpecific" });
    expect(updateErrors(free, ingressWithPath({}))).toEqual([]);
    expect(updateErrors(ingressWithPath({ path: "//" }), free)).toEqual([
      pathError("\"//\": must not contain '//'"),
    ]);
  });

  it("name and uid stay", () => {
    const renamed = { ...stored, metadata: { ...stored.metadata, name: "b" } };
    expect(updateErrors(renamed, stored)).toEqual(['metadata.name: Invalid value: "b": field is immutable']);
  });

  it("an object whose spec is absent is refused as on create", () => {
    const { spec: _, ...bare } = ingressOf({});
    expect(createErrors(bare)).toEqual(updateErrors(bare, bare));
  });
});

describe("TestIngressClassStrategy", () => {
  it("is cluster scoped", () => {
    expect(classStrategy).toMatchObject({ isNamespaced: false, resource: "ingressclasses" });
  });

  it("counts the changes of the spec", () => {
    const old = prepareCreate(classStrategy as Strategy, classOf({ controller: "a.b/c" }), gates).object;
    expect(old.metadata.generation).toBe(1);
    const parameters = { kind: "k", name: "n", scope: "Cluster" };
    const next = { ...old, spec: { controller: "a.b/c", parameters } };
    expect(prepareUpdate(classStrategy as Strategy, next, old, gates).object.metadata.generation).toBe(2);
    expect(prepareUpdate(classStrategy as Strategy, old, old, gates).object.metadata.generation).toBe(1);
  });
});
