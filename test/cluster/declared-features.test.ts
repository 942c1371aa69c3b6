import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { type KubectlResult, KubectlRunner } from "../support/kubectl.ts";
import { describeReal } from "../support/real-parts.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { pathTakenBy, readMetricsOf } from "../support/taken-path.ts";
import { gatewayConfiguration, nodeConfiguration } from "./door-configurations.ts";
import { allowGateway } from "./doors.ts";
import { kubeconfigText, NODE_NAME, TOKENS } from "./kubernetes/credentials.ts";
import { type RunningCluster, startCluster } from "./kubernetes/start-cluster.ts";

const FEATURE = "ExtendWebSocketsToKubelet";
const ANNOTATION = "sluice.dev/published-features";
/** A kubelet renews its Lease and syncs its status every 10 s. */
const SYNCS = { timeoutMs: 90_000, intervalMs: 500 };

interface NodeState {
  readonly metadata: {
    readonly annotations?: Readonly<Record<string, string>>;
    readonly managedFields: readonly { readonly manager: string; readonly time: string }[];
  };
  readonly status: { readonly declaredFeatures?: readonly string[] };
}

/** Its own cluster: the kubelet's gate is off, so that what gateways know of it comes from Sluice. */
describeReal("cluster", "features of a node whose kubelet owns its list", () => {
  let cluster: RunningCluster;
  let admin: KubectlRunner;
  let folder: string;
  const gateways: ServedGateway[] = [];
  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-features-"));
    cluster = await startCluster({ featureGates: { [FEATURE]: false } });
    admin = runner(cluster.adminKubeconfig);
    const role = {
      ...gatewayConfiguration(cluster, "both"),
      cluster: { ...publication(), forwardAs: "impersonate" },
    };
    await allowGateway(cluster, write("role", role), "sluice-gateway");
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    admin?.remove();
    await cluster?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const runner = (kubeconfig: string): KubectlRunner =>
    new KubectlRunner(
      { version: cluster.version, path: path.join(cluster.programs, "kubectl"), minor: 37 },
      { kubeconfig },
    );
  const publication = (): object => ({
    kubeconfig: path.join(cluster.folder, "sluice.kubeconfig"),
    publishDeclaredFeatures: { nodes: [NODE_NAME] },
  });
  const write = (name: string, configuration: object): string => {
    const file = path.join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify(configuration));
    return file;
  };
  const serve = async (name: string, configuration: object): Promise<ServedGateway> => {
    const gateway = await serveGateway(write(name, configuration));
    gateways.push(gateway);
    return gateway;
  };
  const get = async (...args: string[]): Promise<string> => (await admin.run(["get", ...args])).stdout;
  const node = async (): Promise<NodeState> =>
    JSON.parse(await get("node", NODE_NAME, "-o", "json", "--show-managed-fields"));
  const renewals = (): Promise<string> =>
    get("lease", NODE_NAME, "-n", "kube-node-lease", "-o", "jsonpath={.spec.renewTime}");
  /** So many further syncs of the kubelet. */
  const untilSynced = async (times: number): Promise<void> => {
    for (let seen = 0, last = await renewals(); seen < times; seen++) {
      await eventually("the kubelet's next sync", async () => (await renewals()) !== last, SYNCS);
      last = await renewals();
    }
  };
  /** PATCHes of Nodes' statuses that the API server has answered, of every client. */
  const patches = async (): Promise<number> => {
    const page = await get("--raw", "/metrics");
    const rows = page.split("\n").filter((line) => /^apiserver_request_total\{.*resource="nodes"/.test(line));
    return rows
      .filter((line) => /subresource="status"/.test(line) && /verb="PATCH"/.test(line))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
  };
  const featuresOf = ({ metadata, status }: NodeState) => ({
    annotation: metadata.annotations?.[ANNOTATION],
    isListed: (status.declaredFeatures ?? []).includes(FEATURE),
    writtenAt: metadata.managedFields.find(({ manager }) => manager === "sluice")?.time,
  });

  it("are published in the annotation, once, and the kubelet keeps its list", async () => {
    const before = (await node()).status.declaredFeatures;
    expect(before).toContain("RestartAllContainersOnContainerExits");
    expect(before).not.toContain(FEATURE);
    const sluice = await serve("node", { ...nodeConfiguration(cluster), cluster: publication() });
    const published = async (): Promise<boolean> => featuresOf(await node()).annotation === FEATURE;
    await eventually("the annotation is there", published);
    await untilSynced(1);
    const then = featuresOf(await node());
    const patchesThen = await patches();
    await untilSynced(3);
    expect(featuresOf(await node())).toEqual(then);
    expect(then).toMatchObject({ annotation: FEATURE, isListed: false });
    // The kubelet's own, whose status is written each 10 s at most.
    expect((await patches()) - patchesThen).toBeLessThanOrEqual(4);
    expect((await node()).status.declaredFeatures).toEqual(before);
    const metrics = await readMetricsOf(sluice.adminUrl);
    expect(metrics.get("sluice_declared_feature_conflicts_total")).toBe(0);
  });

  it("let a gateway pass WebSockets through to that node until they are withdrawn", async () => {
    const gateway = await serve("gateway", gatewayConfiguration(cluster, "both"));
    const kubeconfig = path.join(folder, "kubeconfig");
    const user = { token: TOKENS.admin.token };
    writeFileSync(kubeconfig, kubeconfigText(`https://${gateway.authority}`, cluster.credentials, user));
    const kubectl = runner(kubeconfig);
    let result: KubectlResult | undefined;
    const exec = async (): Promise<void> => {
      result = await kubectl.run(["exec", "web", "-c", "main", "--", "echo", "through"]);
    };
    try {
      const path_ = await pathTakenBy(() => readMetricsOf(gateway.adminUrl), exec);
      expect(result).toMatchObject({ exitCode: 0, stdout: "through\n", stderr: "" });
      expect(path_.ways.join()).toContain("pass-through");
      // SIGTERM to the node's Sluice takes the annotation back.
      const [sluice] = gateways;
      await sluice?.stop();
      expect(featuresOf(await node()).annotation).toBeUndefined();
      await serve("node", nodeConfiguration(cluster));
      const declares = async (): Promise<boolean> => {
        const page = await fetch(new URL(`/debug/nodes?name=${NODE_NAME}`, gateway.adminUrl));
        const [seen] = (await page.json()) as { capability: { declaresWebSocket: boolean } }[];
        return seen?.capability.declaresWebSocket === true;
      };
      await eventually("the gateway has seen it", async () => !(await declares()));
      const second = await pathTakenBy(() => readMetricsOf(gateway.adminUrl), exec);
      expect(result).toMatchObject({ exitCode: 0, stdout: "through\n" });
      expect(second.ways.join()).toContain("translate");
    } finally {
      kubectl.remove();
    }
  });
});
