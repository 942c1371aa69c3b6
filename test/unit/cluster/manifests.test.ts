import { describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../packages/client/src/config/configuration-error.ts";
import type { Pod } from "../../../src/api/objects.ts";
import { parseManifests } from "../../../src/cluster/manifests.ts";
import { exampleManifests } from "../../support/api/example-cluster.ts";

const parse = (...texts: string[]) =>
  parseManifests(texts.map((text, index) => ({ name: `${index}.yaml`, text })));
const problemsOf = (...texts: string[]): string[] => {
  try {
    parse(...texts);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as ConfigurationError).message.split("\n");
  }
};
const podText = (name: string, rest = "") => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  containers: [{name: main, image: i}]
${rest}`;
const onlyPod = (text: string) => parse(text).find(({ kind }) => kind === "Pod") as Pod;

describe("parseManifests", () => {
  it("reads documents, lists and JSON, and adds the namespaces that they imply", () => {
    const json = JSON.stringify({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: "other", labels: { a: "b" } },
    });
    const objects = parse(exampleManifests, json, "", "apiVersion: v1\nkind: List\n");
    expect(
      objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`),
    ).toEqual([
      "Node /node-spdy",
      "Node /node-ws",
      "Pod default/web",
      "Pod default/web-ws",
      "Pod other/waiting",
      "Namespace /other",
      "Namespace /default",
    ]);
    expect(objects[5]).toMatchObject({
      metadata: { labels: { a: "b", "kubernetes.io/metadata.name": "other" } },
      status: { phase: "Active" },
    });
  });

  it("gives the same object the same uid, and other objects others", () => {
    const uids = parse(exampleManifests).map(({ metadata }) => metadata.uid);
    expect(parse(exampleManifests).map(({ metadata }) => metadata.uid)).toEqual(uids);
    expect(new Set(uids).size).toBe(uids.length);
    expect(
      uids.every((uid) =>
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(uid ?? ""),
      ),
    ).toBe(true);
    expect(onlyPod(podText("a").replace("name: a", "name: a, uid: mine")).metadata.uid).toBe("mine");
  });

  it("takes a placed pod without a status for a running one", () => {
    expect(onlyPod(podText("a")).status).toEqual({ phase: "Pending" });
    expect(onlyPod(podText("a", "  nodeName: n1")).status).toMatchObject({
      phase: "Running",
      containerStatuses: [{ name: "main", ready: true, restartCount: 0 }],
    });
    expect(onlyPod(podText("a", "  nodeName: n1\nstatus: {phase: Succeeded}")).status).toEqual({
      phase: "Succeeded",
    });
  });

  it("says where every wrong field stands", () => {
    const list =
      "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: p\n  spec:\n    containers:\n    - name: main\n";
    expect(
      problemsOf(podText("A", "  nodeName: NN"), list, "a: [", "---\nkind: Pod\napiVersion: v2\n"),
    ).toEqual([
      expect.stringMatching(
        /^0\.yaml:4: Pod "A" is invalid: metadata\.name: Invalid value: "A": a lowercase RFC 1123 subdomain/,
      ),
      expect.stringMatching(/^0\.yaml:7: Pod "A" is invalid: spec\.nodeName: Invalid value: "NN"/),
      '1.yaml:10: Pod "p" is invalid: spec.containers[0].image: Required value',
      expect.stringMatching(/^2\.yaml:1:\d+: /),
      expect.stringMatching(/^3\.yaml:2: no matches for kind "Pod" in version "v2"/),
    ]);
  });

  it("refuses an object that stands twice, with both places", () => {
    expect(problemsOf(podText("a"), `---${podText("b")}---${podText("a")}`)).toEqual([
      '1.yaml:8: Pod "default/a" already exists: it stands at 0.yaml:2 too',
    ]);
    expect(problemsOf(podText("a"), podText("a").replace("name: a", "name: a, namespace: other"))).toEqual(
      [],
    );
  });
});
