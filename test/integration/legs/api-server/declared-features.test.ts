import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import type { Node } from "../../../../src/api/objects.ts";
import { createSelfSignedCertificate } from "../../../../src/fake-node/self-signed.ts";
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
  return { gateway, declared };
}

it("publishes a feature while it runs, and takes it back when it stops", async () => {
  const { gateway, declared } = await publishingGateway({}, {}, ["A"]);
  await eventually("it is published", () => declared() === `A,${FEATURE}`);
  await gateway.stop();
  expect(declared()).toBe("A");
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
