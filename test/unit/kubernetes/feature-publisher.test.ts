import { expect, it } from "vitest";
import type { Node } from "../../../src/api/objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { ApiError, type ApiRequest } from "../../../src/kubernetes/api-client.ts";
import { FeaturePublisher } from "../../../src/kubernetes/feature-publisher.ts";
import { eventually } from "../../support/eventually.ts";
import { untilStill } from "../../support/still.ts";

const ANNOTATION = "sluice.dev/published-features";

let version = 0;
const node = (name: string, ...declaredFeatures: string[]): Node => {
  version++;
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, resourceVersion: String(version) },
    status: { declaredFeatures },
  };
};
const published = (name: string, annotation: string, ...declaredFeatures: string[]): Node => {
  const { metadata, ...rest } = node(name, ...declaredFeatures);
  return { ...rest, metadata: { ...metadata, annotations: { [ANNOTATION]: annotation } } };
};
/** With what an API server records of a list's writer. */
const ownedBy = (manager: string | undefined, { metadata, ...rest }: Node): Node => {
  const fieldsV1 = { "f:status": { "f:declaredFeatures": {} } };
  return { ...rest, metadata: { ...metadata, managedFields: [null, { manager, fieldsV1 }] } };
};

interface Publishing {
  readonly intervalMs?: number;
  readonly features?: readonly string[];
  /** What the API server holds in place of the store's object. */
  readonly live?: (name: string) => Node | undefined;
  readonly answerPatch?: () => Promise<unknown>;
}

function publishing({ intervalMs = 0, features = ["X"], live, answerPatch }: Publishing = {}) {
  const cluster = new ClusterStore();
  const patches: ApiRequest[] = [];
  const warnings: string[] = [];
  const infos: object[] = [];
  let conflicts = 0;
  const publisher = new FeaturePublisher({
    client: {
      json: async (request) => {
        const name = request.path.split("/")[4] ?? "";
        if (request.method !== "PATCH") return live?.(name) ?? cluster.getNode(name);
        patches.push(request);
        return await answerPatch?.();
      },
    },
    cluster,
    nodes: ["a", "b"],
    features,
    metrics: {
      featuresRemoved: () => {
        conflicts++;
      },
    },
    logger: {
      info: (fields: object) => void infos.push(fields),
      warn: (fields: object, text?: string) => void warnings.push(`${JSON.stringify(fields)} ${text}`),
    },
    intervalMs,
  });
  return { cluster, patches, warnings, infos, conflicts: () => conflicts, publisher };
}

/** The annotation and the list of a PATCH. */
const written = ({ body }: ApiRequest) => {
  const { metadata, status } = body?.json as {
    metadata: { annotations: Record<string, string | null> };
    status?: { declaredFeatures: string[] };
  };
  return [metadata.annotations[ANNOTATION], status?.declaredFeatures];
};

it("adds what is missing, guarded by the version, to the nodes it is told of", async () => {
  const { cluster, patches, publisher } = publishing();
  for (const object of [node("a"), node("b", "X"), node("c")]) cluster.upsert(object);
  await eventually("a patch", () => patches.length > 0);
  expect(patches).toEqual([
    {
      method: "PATCH",
      path: "/api/v1/nodes/a/status?fieldManager=sluice",
      body: {
        contentType: "application/merge-patch+json",
        json: {
          metadata: {
            resourceVersion: cluster.getNode("a")?.metadata.resourceVersion,
            annotations: { [ANNOTATION]: "X" },
          },
          status: { declaredFeatures: ["X"] },
        },
      },
    },
  ]);
  publisher.stop();
  cluster.upsert(node("a"));
  await untilStill("the number of patches", () => patches.length);
});

it.each([
  ["a kubelet", "kubelet"],
  ["a writer without a name", undefined],
])("leaves a list that %s has written, and publishes in the annotation", async (_, manager) => {
  const { cluster, patches, infos, publisher } = publishing({
    live: (name) => ownedBy(manager, cluster.getNode(name) ?? node(name)),
  });
  cluster.upsert(node("a"));
  await eventually("a patch", () => patches.length > 0);
  cluster.upsert(published("a", "X"));
  await untilStill("the number of patches", () => patches.length);
  expect(patches.map(written)).toEqual([["X", undefined]]);
  expect(infos).toEqual([{ node: "a", features: ["X"] }]);
  publisher.stop();
});

it("leaves a list with features that are not its own, for a kubelet writes it whole", async () => {
  const { cluster, patches, conflicts, publisher } = publishing();
  cluster.upsert(node("a", "K"));
  await eventually("a patch", () => patches.length > 0);
  cluster.upsert(published("a", "X", "K"));
  await untilStill("the number of patches", () => patches.length);
  expect(patches.map(written)).toEqual([["X", undefined]]);
  expect(conflicts()).toBe(0);
  publisher.stop();
});

it("adds to a list that it has written itself", async () => {
  const { cluster, patches, publisher } = publishing({
    features: ["X", "Y"],
    live: (name) => ownedBy("sluice", cluster.getNode(name) ?? node(name)),
  });
  cluster.upsert(published("a", "X", "X"));
  await eventually("a patch", () => patches.length > 0);
  expect(patches.map(written)).toEqual([["X,Y", ["X", "Y"]]]);
  publisher.stop();
});

it("gives way to an owner that removes what was published, once and for all, and counts it", async () => {
  const { cluster, patches, warnings, conflicts, publisher } = publishing();
  cluster.upsert(node("a"));
  await eventually("a patch", () => patches.length === 1);
  cluster.upsert(published("a", "X", "X"));
  expect(conflicts()).toBe(0);
  for (const declared of [[], ["K"], []]) cluster.upsert(published("a", "X", ...declared));
  await untilStill("the number of patches", () => patches.length);
  expect(patches).toHaveLength(1);
  expect(conflicts()).toBe(1);
  expect(warnings).toEqual([
    '{"node":"a","features":["X"]} features were removed from a node\'s status.declaredFeatures, which has another owner: they stay in the annotation alone',
  ]);
  publisher.stop();
});

it("publishes anew for a node that was made anew, at most once in an interval", async () => {
  const { cluster, patches, publisher } = publishing({ intervalMs: 60_000 });
  cluster.upsert(node("a"));
  await eventually("a patch", () => patches.length === 1);
  cluster.upsert(published("a", "X", "X"));
  cluster.upsert(node("a"));
  await untilStill("the number of patches", () => patches.length);
  expect(patches).toHaveLength(1);
  publisher.stop();
});

it("tries again after a version conflict and a failure, and tells of the failure", async () => {
  const refusals = [new ApiError(409, ""), new ApiError(500, "")];
  const { cluster, patches, warnings, publisher } = publishing({
    intervalMs: 1,
    answerPatch: async () => {
      const refusal = refusals.shift();
      if (refusal) throw refusal;
    },
  });
  cluster.upsert(node("a"));
  await eventually("three tries", () => patches.length === 3);
  expect(warnings).toEqual([
    '{"node":"a","problem":"the API server answered 500"} a node\'s features could not be published',
  ]);
  publisher.stop();
});

it("takes back what it published once the gate is off, and nothing that the kubelet declares", async () => {
  const { cluster, patches, publisher } = publishing({ features: [] });
  for (const object of [published("a", "X", "K", "X"), node("b", "X")]) cluster.upsert(object);
  await eventually("a patch", () => patches.length > 0);
  expect(patches.map(written)).toEqual([[null, ["K"]]]);
  publisher.stop();
});

it("takes its annotation back, and leaves the list of a kubelet that declares the same by now", async () => {
  const { cluster, patches, publisher } = publishing({
    features: [],
    live: (name) => ownedBy("kubelet", cluster.getNode(name) ?? node(name)),
  });
  cluster.upsert(published("a", "X", "K", "X"));
  await eventually("a patch", () => patches.length > 0);
  expect(patches.map(written)).toEqual([[null, undefined]]);
  publisher.stop();
});

it("withdraws at the end, from the node as it is then, and publishes nothing after it", async () => {
  let stands = published("a", "X", "K", "X");
  const refusals = [new ApiError(409, "")];
  const { cluster, patches, publisher } = publishing({
    intervalMs: 60_000,
    live: () => stands,
    answerPatch: async () => {
      const refusal = refusals.pop();
      if (refusal === undefined) return;
      // The kubelet was first.
      stands = published("a", "X", "K", "L", "X");
      throw refusal;
    },
  });
  cluster.upsert(stands);
  await publisher.withdraw();
  expect(patches.map(written)).toEqual([
    [null, ["K"]],
    [null, ["K", "L"]],
  ]);
  cluster.upsert(node("a", "K"));
  await untilStill("the number of patches", () => patches.length);
  expect(patches).toHaveLength(2);
});
