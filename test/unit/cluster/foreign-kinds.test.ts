import { describe, expect, it } from "vitest";
import { foreignKindOf } from "../../../src/cluster/foreign-kinds.ts";
import { parseManifests, readManifests } from "../../../src/cluster/manifests.ts";

describe("kinds that are not used here", () => {
  it.each([
    ["v1", "ConfigMap"],
    ["v1", "ServiceAccount"],
    ["v1", "PersistentVolumeClaim"],
    ["v1", "Endpoints"],
    ["v1", "LimitRange"],
    ["apiextensions.k8s.io/v1", "CustomResourceDefinition"],
    ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"],
    ["networking.k8s.io/v1", "NetworkPolicy"],
    ["policy/v1", "PodDisruptionBudget"],
    ["autoscaling/v2", "HorizontalPodAutoscaler"],
    ["route.openshift.io/v1", "Route"],
    ["serving.knative.dev/v1", "Service"],
    ["gateway.networking.k8s.io/v1", "HTTPRoute"],
    ["cert-manager.io/v1", "Certificate"],
  ])("%s %s is passed over", (apiVersion, kind) => {
    expect(foreignKindOf({ apiVersion, kind })).toBe(kind);
  });

  it.each([
    ["v1", "Pod"],
    ["v2", "Pod"],
    ["v1", "pod"],
    ["v1", "Pods"],
    ["v1", "PodList"],
    ["v1", "Servce"],
    ["extensions/v1beta1", "Ingress"],
    ["networking.k8s.io/v1", "Ingres"],
    ["rbac.authorization.k8s.io/v1beta1", "Role"],
    ["", "ConfigMap"],
    ["v1", ""],
    ["v1", 7],
  ])("%s %s is not: it is read, or refused", (apiVersion, kind) => {
    expect(foreignKindOf({ apiVersion, kind })).toBeUndefined();
  });

  it("stop nothing beside them, in documents and Lists", () => {
    const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: c }\ndata: { a: 0120 }\n";
    const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: { name: n1 }\n";
    const account = "{ apiVersion: v1, kind: ServiceAccount, metadata: { name: s } }";
    const list = `apiVersion: v1\nkind: List\nitems: [${account}, ${account}]\n`;
    const files = [
      { name: "a.yaml", text: `${configMap}---\n${namespace}---\n${list}` },
      { name: "b.yaml", text: namespace.replace("n1", "n2") },
    ];
    const { objects, passedOver } = readManifests(files, undefined, files);
    expect(objects.map(({ metadata }) => metadata.name)).toEqual(["n1", "n2"]);
    const line = "a.yaml: passed over, as not used here: ConfigMap, ServiceAccount (2)";
    expect(passedOver).toEqual([line]);
    const lines: string[] = [];
    expect(parseManifests(files, undefined, (each) => lines.push(each))).toMatchObject([
      { metadata: { name: "n1" } },
      { metadata: { name: "n2" } },
      {},
    ]);
    expect(lines).toEqual([line]);
  });
});
