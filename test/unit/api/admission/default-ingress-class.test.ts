import { describe, expect, it } from "vitest";
import { withDefaultIngressClass } from "../../../../src/api/admission/default-ingress-class.ts";
import { parseManifests } from "../../../../src/cluster/manifests.ts";
import { backend, classOf, ingressOf } from "../example-ingress.ts";

const isDefault = { "ingressclass.kubernetes.io/is-default-class": "true" };
const classNamed = (name: string, annotations: object = {}, creationTimestamp?: string) =>
  classOf(
    { controller: "a.b/c" },
    { name, annotations, ...(creationTimestamp !== undefined && { creationTimestamp }) },
  );
const plain = ingressOf({ defaultBackend: backend });
const chosen = (...args: Parameters<typeof withDefaultIngressClass>) =>
  withDefaultIngressClass(...args).spec?.ingressClassName;

/** After plugin/pkg/admission/network/defaultingressclass/admission_test.go. */
describe("TestAdmission (DefaultIngressClass)", () => {
  it("no default class: nothing is set", () => {
    expect(withDefaultIngressClass(plain, [classNamed("a")])).toBe(plain);
    expect(withDefaultIngressClass(plain, [])).toBe(plain);
  });

  it("one default class sets the field", () => {
    expect(chosen(plain, [classNamed("a"), classNamed("b", isDefault)])).toBe("b");
  });

  it("a class that is set stays, the empty one too", () => {
    for (const name of ["x", ""]) {
      expect(chosen(ingressOf({ ingressClassName: name }), [classNamed("b", isDefault)])).toBe(name);
    }
  });

  it("the annotation stays alone, whatever its value", () => {
    const annotated = ingressOf({}, { annotations: { "kubernetes.io/ingress.class": "" } });
    expect(chosen(annotated, [classNamed("b", isDefault)])).toBeUndefined();
  });

  it("two default classes: the newest", () => {
    const older = classNamed("a", isDefault, "2026-01-01T00:00:00Z");
    const newer = classNamed("b", isDefault, "2026-01-02T00:00:00Z");
    expect(chosen(plain, [older, newer])).toBe("b");
    expect(chosen(plain, [newer, older])).toBe("b");
  });

  it("two default classes of one age: the lower name", () => {
    const [a, b] = ["a", "b"].map((name) => classNamed(name, isDefault, "2026-01-01T00:00:00Z"));
    expect(a && b && chosen(plain, [b, a])).toBe("a");
    expect(chosen(plain, [classNamed("d", isDefault), classNamed("c", isDefault)])).toBe("c");
  });

  it.each(["True", "yes", "1", "", " true"])("the annotation's value %j is not true", (value) => {
    const annotations = { "ingressclass.kubernetes.io/is-default-class": value };
    expect(chosen(plain, [classNamed("a", annotations)])).toBeUndefined();
  });

  it("two default classes are refused where that is asked for, as API servers before 1.26 did", () => {
    const classes = [classNamed("a", isDefault), classNamed("b", isDefault)];
    expect(() => withDefaultIngressClass(plain, classes, "refused")).toThrow(
      'ingresses.networking.k8s.io "a" is forbidden: Internal error occurred: 2 default IngressClasses were found, only 1 allowed',
    );
    expect(chosen(plain, classes.slice(1), "refused")).toBe("b");
  });
});

describe("manifests", () => {
  it("give an Ingress without a class the default one of the same files", () => {
    const text = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web }
spec: { defaultBackend: { service: { name: web, port: { number: 80 } } } }
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata:
  name: sluice
  annotations: { ingressclass.kubernetes.io/is-default-class: "true" }
spec: { controller: sluice.dev/ingress-controller }
`;
    const objects = parseManifests([{ name: "x.yaml", text }]);
    expect(objects.find(({ kind }) => kind === "Ingress")).toMatchObject({
      metadata: { name: "web", namespace: "default", generation: 1 },
      spec: { ingressClassName: "sluice" },
    });
  });
});
