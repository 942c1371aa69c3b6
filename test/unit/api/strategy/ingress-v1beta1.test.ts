import { describe, expect, it } from "vitest";
import { ingressV1beta1 } from "../../../../src/api/strategy/ingress-v1beta1.ts";
import { readObject } from "../../../../src/api/strategy/read-object.ts";
import { asV1beta1 } from "../../../support/api-server/ingress-v1beta1.ts";

const apiVersion = "networking.k8s.io/v1beta1";
const metadata = { name: "a", namespace: "default" };
const ingress = (spec: object) => ({ apiVersion, kind: "Ingress", metadata, spec });
const path = (backend: object, fields: object = {}) => ({
  rules: [{ host: "h", http: { paths: [{ path: "/", ...fields, backend }] } }],
});
const pathType = "ImplementationSpecific";

/** After pkg/apis/networking/v1beta1/conversion_test.go. */
describe("TestIngressBackendConversion", () => {
  it.each([
    {
      name: "service-port-number",
      old: { serviceName: "test-backend", servicePort: 8080 },
      held: { service: { name: "test-backend", port: { number: 8080 } } },
    },
    {
      name: "service-named-port",
      old: { serviceName: "test-backend", servicePort: "https" },
      held: { service: { name: "test-backend", port: { name: "https" } } },
    },
    {
      name: "empty-service-name",
      old: { serviceName: "", servicePort: "https" },
      held: { service: { name: "", port: { name: "https" } } },
    },
    {
      name: "resource",
      old: { resource: { apiGroup: "a.b", kind: "k", name: "n" } },
      held: { resource: { apiGroup: "a.b", kind: "k", name: "n" } },
    },
  ])("$name", ({ old, held }) => {
    const converted = ingressV1beta1.toHeld(ingress({ backend: old, ...path(old, { pathType }) }));
    expect(converted).toEqual({
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata,
      spec: { defaultBackend: held, ...path(held, { pathType }) },
    });
    expect(asV1beta1(converted)).toEqual(ingress({ backend: old, ...path(old, { pathType }) }));
  });

  it.each([
    { old: { servicePort: 0 }, held: {} },
    { old: {}, held: {} },
    { old: { servicePort: "" }, held: { service: { name: "", port: {} } } },
    { old: { servicePort: 80 }, held: { service: { name: "", port: { number: 80 } } } },
    { old: { serviceName: "s" }, held: { service: { name: "s", port: {} } } },
  ])("a service is made of $old: $held", ({ old, held }) => {
    expect(ingressV1beta1.toHeld(ingress({ backend: old })).spec).toEqual({ defaultBackend: held });
  });

  it("keeps everything else, with a default for pathType", () => {
    const tls = [{ hosts: ["h"], secretName: "s" }];
    const spec = { ingressClassName: "c", tls, extra: 1, ...path({ serviceName: "s", servicePort: 1 }) };
    const held = ingressV1beta1.toHeld(ingress(spec)).spec;
    expect(held).toMatchObject({
      ingressClassName: "c",
      tls,
      extra: 1,
      rules: [{ host: "h", http: { paths: [{ path: "/", pathType }] } }],
    });
    expect(ingressV1beta1.toHeld(ingress(path({}, { pathType: "Exact" }))).spec).toMatchObject({
      rules: [{ http: { paths: [{ pathType: "Exact" }] } }],
    });
  });

  it("leaves rules without http and objects without spec alone", () => {
    expect(ingressV1beta1.toHeld(ingress({ rules: [{ host: "h" }, null] })).spec).toEqual({
      rules: [{ host: "h" }, {}],
    });
    const { spec: _, ...bare } = ingress({});
    expect(ingressV1beta1.toHeld(bare)).toEqual({ ...bare, apiVersion: "networking.k8s.io/v1" });
  });
});

describe("objects of networking.k8s.io/v1beta1", () => {
  it("are read as v1, and judged by v1's rules", () => {
    const reading = readObject(ingress({ backend: { serviceName: "s", servicePort: "http" } }));
    expect(reading.isValid && reading.object).toMatchObject({
      apiVersion: "networking.k8s.io/v1",
      spec: { defaultBackend: { service: { name: "s", port: { name: "http" } } } },
    });
    const bad = readObject(ingress({ backend: { serviceName: "A", servicePort: 1 } }));
    expect(bad.isValid ? [] : bad.problems.map(({ message }) => message.slice(0, 92))).toEqual(
      ['Ingress.networking.k8s.io "a" is invalid: spec.defaultBackend.service.name: Invalid value: "A'].map(
        (text) => text.slice(0, 92),
      ),
    );
  });

  it("keep the types of their own fields", () => {
    const reading = readObject(ingress({ backend: { servicePort: true } }));
    expect(reading.isValid ? [] : reading.problems).toEqual([
      {
        path: ["spec", "backend", "servicePort"],
        message:
          'Ingress in version "v1beta1" cannot be handled as a Ingress: json: cannot unmarshal bool into Go struct field IngressBackend.spec.backend.servicePort of type int32',
      },
    ]);
  });

  it("hold classes too", () => {
    const given = {
      apiVersion,
      kind: "IngressClass",
      metadata: { name: "c" },
      spec: { controller: "a.b/c", parameters: { kind: "k", name: "n" } },
    };
    const reading = readObject(given);
    expect(reading.isValid && reading.object).toMatchObject({
      apiVersion: "networking.k8s.io/v1",
      spec: { parameters: { scope: "Cluster" } },
    });
  });
});
