import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import type { Node } from "../../../../src/api/objects.ts";
import { resourceOfKind } from "../../../support/api-server/resources.ts";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { eventually } from "../../../support/eventually.ts";
import { startTestGateway } from "../../../support/test-gateway.ts";

const FEATURE = "ExtendWebSocketsToKubelet";

/** A live API with one node, and a gateway that publishes for it. */
async function publishingGateway(featureGates: object, annotations: object, declaredFeatures: string[]) {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-features-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const server = await TestApiServer.start();
  onTestFinished(() => server.stop());
  server.apply({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "node", annotations },
    status: { declaredFeatures },
  });
  const kubeconfig = await server.writeKubeconfig(path.join(folder, "config"));
  const { certPem } = await createSelfSignedCertificate(["node"]);
  const gateway = await startTestGateway({
    kubeletAuthority: certPem,
    configuration: { featureGates, cluster: { kubeconfig, publishDeclaredFeatures: { nodes: ["node"] } } },
  });
  const declared = () => {
    const node = server.store.get(resourceOfKind("Node"), "", "node") as unknown as Node;
    return (node.status?.declaredFeatures ?? []).join();
  };
  /** What a kubelet writes that takes its list for the only one. */
  const removeFromList = () => {
    const node = server.store.get(resourceOfKind("Node"), "", "node");
    server.apply({ ...node, status: { declaredFeatures: ["A"] } });
  };
  const patches = () => server.requests.filter(({ method }) => method === "PATCH").length;
  return { gateway, declared, removeFromList, patches };
}

it("publishes a feature while it runs, and takes it back when it stops", async () => {
  const { gateway, declared } = await publishingGateway({}, {}, []);
  await eventually("it is published", () => declared() === FEATURE);
  await gateway.stop();
  expect(declared()).toBe("");
});

it.each([
  ["its gate is off", { ExtendWebSocketsToKubelet: false }],
  ["no features are declared", { NodeDeclaredFeatures: false, ExtendWebSocketsToKubelet: false }],
])("takes a feature back that an earlier run has published where %s", async (_, gates) => {
  const annotations = { "sluice.dev/published-features": FEATURE };
  const { gateway, declared } = await publishingGateway(gates, annotations, ["A", FEATURE]);
  await eventually("it is withdrawn", () => declared() === "A");
  await gateway.stop();
});

it("leaves what the kubelet itself declares where the gate is off", async () => {
  const { gateway, declared } = await publishingGateway({ ExtendWebSocketsToKubelet: false }, {}, [FEATURE]);
  await eventually(
    "the gateway is ready",
    async () => (await fetch(new URL("/readyz", gateway.adminUrl))).ok,
  );
  await gateway.stop();
  expect(declared()).toBe(FEATURE);
});

it("passes WebSockets through to a node whose kubelet removes what is published, and fights with nobody", async () => {
  const { gateway, declared, removeFromList, patches } = await publishingGateway({}, {}, []);
  const passesThrough = () => gateway.running.nodes("node")[0]?.capability.declaresWebSocket;
  await eventually("it is published", () => declared() === FEATURE);
  removeFromList();
  const conflicts = async () => (await gateway.readMetrics()).get("sluice_declared_feature_conflicts_total");
  await eventually("the conflict is counted", async () => (await conflicts()) === 1);
  expect(passesThrough()).toBe(true);
  expect(gateway.logLines.filter((line) => line.includes("which has another owner"))).toHaveLength(1);
  expect([declared(), patches()]).toEqual(["A", 1]);
  await gateway.stop();
  expect([declared(), patches()]).toEqual(["A", 2]);
});
