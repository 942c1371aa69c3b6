import { expect, it } from "vitest";
import type { Node } from "../../../src/api/objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import type { ApiRequest } from "../../../src/kubernetes/api-client.ts";
import { ApiError } from "../../../src/kubernetes/api-error.ts";
import { FeaturePublisher } from "../../../src/kubernetes/feature-publisher.ts";
import { eventually } from "../../support/eventually.ts";
import { untilStill } from "../../support/still.ts";

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

function publishing(
  intervalMs: number,
  answer: () => Promise<unknown> = async () => ({}),
  features: readonly string[] = ["X"],
) {
  const cluster = new ClusterStore();
  const sent: ApiRequest[] = [];
  const failures: string[] = [];
  const publisher = new FeaturePublisher({
    client: {
      json: (request) => {
        sent.push(request);
        return answer();
      },
    },
    cluster,
    nodes: ["a", "b"],
    features,
    onFailure: (name, problem) => failures.push(`${name}: ${problem}`),
    intervalMs,
  });
  return { cluster, sent, failures, publisher };
}

it("adds what is missing, guarded by the version, to the nodes it is told of", async () => {
  const { cluster, sent, publisher } = publishing(0);
  for (const object of [node("a", "Z", "A"), node("b", "X"), node("c")]) cluster.upsert(object);
  await eventually("a patch", () => sent.length > 0);
  expect(sent).toEqual([
    {
      method: "PATCH",
      path: "/api/v1/nodes/a/status",
      body: {
        contentType: "application/merge-patch+json",
        json: {
          metadata: {
            resourceVersion: cluster.getNode("a")?.metadata.resourceVersion,
            annotations: { "sluice.dev/published-features": "X" },
          },
          status: { declaredFeatures: ["A", "X", "Z"] },
        },
      },
    },
  ]);
  publisher.stop();
  cluster.upsert(node("a"));
  await untilStill("the number of patches", () => sent.length);
});

it("tries again after a conflict and a failure, and tells of the failure", async () => {
  const refusals = [new ApiError(409, ""), new ApiError(500, "")];
  const { cluster, sent, failures, publisher } = publishing(1, async () => {
    const refusal = refusals.shift();
    if (refusal) throw refusal;
  });
  cluster.upsert(node("a"));
  await eventually("three tries", () => sent.length === 3);
  expect(failures).toEqual(["a: the API server answered 500"]);
  publisher.stop();
});

it("does not race with a kubelet that takes its list for the only one", async () => {
  const { cluster, sent, publisher } = publishing(60_000);
  cluster.upsert(node("a"));
  await eventually("a patch", () => sent.length === 1);
  cluster.upsert(node("a", "X"));
  cluster.upsert(node("a"));
  await untilStill("the number of patches", () => sent.length);
  expect(sent).toHaveLength(1);
  publisher.stop();
});

const published = (name: string, annotation: string, ...declaredFeatures: string[]): Node => {
  const { metadata, ...rest } = node(name, ...declaredFeatures);
  return { ...rest, metadata: { ...metadata, annotations: { "sluice.dev/published-features": annotation } } };
};
const written = ({ body }: ApiRequest) => {
  const { metadata, status } = body?.json as {
    metadata: { annotations: Record<string, string | null> };
    status: { declaredFeatures: string[] };
  };
  return [metadata.annotations["sluice.dev/published-features"], status.declaredFeatures];
};

it("takes back what it published once the gate is off, and nothing that the kubelet declares", async () => {
  const { cluster, sent, publisher } = publishing(0, async () => ({}), []);
  for (const object of [published("a", "X", "K", "X"), node("b", "X")]) cluster.upsert(object);
  await eventually("a patch", () => sent.length > 0);
  expect(sent.map(written)).toEqual([[null, ["K"]]]);
  publisher.stop();
});

it("withdraws at the end, from the node as it is then, and publishes nothing after it", async () => {
  let stands = published("a", "X", "K", "X");
  const refusals = [new ApiError(409, "")];
  const { cluster, sent, publisher } = publishing(60_000, async () => {
    const isPatch = sent.at(-1)?.method === "PATCH";
    const refusal = isPatch ? refusals.pop() : undefined;
    // The kubelet was first.
    if (refusal) stands = published("a", "X", "K", "L", "X");
    if (refusal) throw refusal;
    return stands;
  });
  cluster.upsert(stands);
  await publisher.withdraw();
  const patches = sent.filter(({ method }) => method === "PATCH");
  expect(patches.map(written)).toEqual([
    [null, ["K"]],
    [null, ["K", "L"]],
  ]);
  cluster.upsert(node("a", "K"));
  await untilStill("the number of requests", () => sent.length);
  expect(sent).toHaveLength(4);
});
