import { expect, it } from "vitest";
import type { Node } from "../../src/api/objects.ts";
import { ClusterStore } from "../../src/cluster/cluster-store.ts";
import type { ApiRequest } from "../../src/kubernetes/api-client.ts";
import { ApiError } from "../../src/kubernetes/api-error.ts";
import { FeaturePublisher } from "../../src/kubernetes/feature-publisher.ts";
import { eventually } from "../support/eventually.ts";
import { untilStill } from "../support/still.ts";

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

function publishing(intervalMs: number, answer: () => Promise<unknown> = async () => ({})) {
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
    features: ["X"],
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
          metadata: { resourceVersion: cluster.getNode("a")?.metadata.resourceVersion },
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
