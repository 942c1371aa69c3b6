import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { type ClusterSnapshot, snapshotCluster } from "../../../src/kubernetes/component.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { pod } from "./live.ts";

it("asks a live API for what a command is about, and for nothing else", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-look-"));
  const server = await TestApiServer.start();
  server.apply(pod("web"));
  server.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } });
  const configuration = parseConfiguration(
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      cluster: { kubeconfig: await server.writeKubeconfig(path.join(folder, "kubeconfig")) },
    }),
    "gateway.json",
  );
  const stored = ({ store }: ClusterSnapshot) => store;
  const judge = ({ judgeConnect }: ClusterSnapshot) =>
    judgeConnect({ namespace: "default", pod: "web", subresource: "exec" });
  const ofPod = await snapshotCluster(configuration, (live) => live.lookUp("default", "web"), stored);
  const ofNode = await snapshotCluster(configuration, (live) => live.lookUpNode("n"), stored);
  expect([ofPod.listPods().length, ofPod.listNodes().length, ofNode.listNodes().length]).toEqual([1, 1, 1]);
  expect(server.requests.map(({ path: asked }) => asked)).toEqual([
    "/api/v1/namespaces/default/pods/web",
    "/api/v1/nodes/n",
    "/api/v1/nodes/n",
  ]);
  const look = () => snapshotCluster(configuration, () => undefined, judge);
  expect(await look()).toBeUndefined();
  const resourceRules = [
    { operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], scope: "*" },
  ];
  const apiVersion = "admissionregistration.k8s.io/v1";
  const metadata = { name: "strict" };
  server.apply({
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata,
    spec: { matchConstraints: { resourceRules } },
  });
  server.apply({
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata,
    spec: { policyName: "strict" },
  });
  expect(await look()).toEqual({
    reason: "admission-judges-it",
    by: 'ValidatingAdmissionPolicy "strict"',
  });
  await server.stop();
  expect((await look().catch(({ code }) => code)) as unknown).toBe(503);
  await expect(snapshotCluster(configuration, (live) => live.lookUpNode("n"), stored)).rejects.toMatchObject({
    code: 503,
  });
  await rm(folder, { recursive: true });
});
