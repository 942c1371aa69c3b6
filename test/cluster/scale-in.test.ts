import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { BUSYBOX_IMAGE } from "../real/containerd/busybox-images.ts";
import { eventually } from "../support/eventually.ts";
import { describeReal } from "../support/real-parts.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { gatewayConfiguration } from "./door-configurations.ts";
import { allowGateway } from "./doors.ts";
import { kubeconfigText, NODE_NAME, subjectOf } from "./kubernetes/credentials.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";
import { NumberedLines } from "./upgrade-load.ts";

const NAME = "scaled-in";
/** Of the pods in the order of their names. */
const SESSIONS = [3, 0, 1];

interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
  };
}

/** The pods hold places: the replicas are processes that have their pods' names and the tokens of their account. */
describeReal("cluster", "a scale-in of replicas with sessions", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-scale-in-"));
  const gateways: ServedGateway[] = [];
  const sessions: NumberedLines[] = [];
  let pods: readonly string[] = [];

  const kubectl = async (...args: string[]): Promise<string> => {
    const env = { ...process.env, KUBECONFIG: cluster.adminKubeconfig };
    const { stdout } = await promisify(execFile)(path.join(cluster.programs, "kubectl"), args, { env });
    return stdout;
  };
  const read = async (): Promise<readonly Pod[]> => {
    const { items } = JSON.parse(await kubectl("get", "pods", "-l", `app=${NAME}`, "-o", "json"));
    return (items as Pod[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  const names = async (): Promise<string[]> => (await read()).map(({ metadata }) => metadata.name).sort();
  const scaleTo = async (replicas: number): Promise<string[]> => {
    await kubectl("scale", "deployment", NAME, `--replicas=${replicas}`);
    return eventually(`${replicas} pods`, async () => {
      const found = await names();
      return found.length === replicas && found;
    });
  };
  const configurationOf = (pod: string, kubeconfig: string): string => {
    const file = path.join(folder, `${pod}.json`);
    const live = { kubeconfig, forwardAs: "impersonate", podDeletionCost: true };
    writeFileSync(file, JSON.stringify({ ...gatewayConfiguration(cluster, "gateway"), cluster: live }));
    return file;
  };
  const serve = async (pod: string): Promise<ServedGateway> => {
    const bound = ["--bound-object-kind=Pod", `--bound-object-name=${pod}`];
    const token = (await kubectl("create", "token", NAME, ...bound)).trim();
    const kubeconfig = path.join(folder, `${pod}.kubeconfig`);
    writeFileSync(kubeconfig, kubeconfigText(cluster.url, cluster.credentials, { token }), { mode: 0o600 });
    return serveGateway(configurationOf(pod, kubeconfig), { environment: { POD_NAME: pod } });
  };

  beforeAll(async () => {
    await applyObjects(path.join(cluster.programs, "kubectl"), cluster.adminKubeconfig, objects());
    const file = configurationOf("any", path.join(cluster.folder, "sluice.kubeconfig"));
    for (const user of [subjectOf("sluice"), `system:serviceaccount:default:${NAME}`]) {
      await allowGateway(cluster, file, user);
    }
    await kubectl("rollout", "status", `deployment/${NAME}`, "--timeout=60s");
    pods = await names();
    gateways.push(...(await Promise.all(pods.map(serve))));
    for (const [index, { authority, adminUrl }] of gateways.entries()) {
      const isReady = async () => (await fetch(new URL("/readyz", adminUrl))).status === 200;
      await eventually("it is ready", isReady, { timeoutMs: 30_000 });
      for (let count = 0; count < (SESSIONS[index] ?? 0); count += 1)
        sessions.push(new NumberedLines(`https://${authority}`));
    }
  });
  afterAll(async () => {
    for (const session of sessions) session.stop();
    for (const gateway of gateways) await gateway.stop();
    await kubectl(
      "delete",
      "--ignore-not-found",
      "--wait=false",
      `deployment/${NAME}`,
      `serviceaccount/${NAME}`,
    );
    rmSync(folder, { recursive: true });
  });

  it("takes the empty one first, then the one with fewer sessions", async () => {
    await eventually(
      () => `sessions run: ${sessions.map(({ problem }) => problem)}`,
      () => sessions.every(({ isEchoed }) => isEchoed),
      { timeoutMs: 30_000 },
    );
    const costs = async () =>
      Object.fromEntries(
        (await read()).map(({ metadata: { name, annotations } }) => [
          name,
          annotations?.["controller.kubernetes.io/pod-deletion-cost"],
        ]),
      );
    const expected = Object.fromEntries(pods.map((pod, index) => [pod, String(SESSIONS[index])]));
    await eventually(
      "the pods have their costs",
      async () => {
        expect(await costs()).toEqual(expected);
        return true;
      },
      { timeoutMs: 60_000, intervalMs: 500 },
    );
    expect(await scaleTo(2)).toEqual([pods[0], pods[2]]);
    expect(await scaleTo(1)).toEqual([pods[0]]);
    expect(gateways.map((gateway) => gateway.log()).join("")).not.toMatch(/deletion cost|lacks permissions/);
  });
});

function objects(): object[] {
  const labels = { app: NAME };
  const metadata = { name: NAME, namespace: "default" };
  const container = {
    name: "place",
    image: BUSYBOX_IMAGE,
    imagePullPolicy: "Never",
    command: ["sleep", "infinity"],
  };
  const spec = {
    nodeName: NODE_NAME,
    serviceAccountName: NAME,
    terminationGracePeriodSeconds: 1,
    containers: [container],
  };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        replicas: SESSIONS.length,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec },
      },
    },
  ];
}
