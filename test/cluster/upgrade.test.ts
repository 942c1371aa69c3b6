import { spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { writeEvidence } from "../support/in-cluster-evidence.ts";
import { collect } from "../support/kubectl.ts";
import { describeFull } from "../support/real-parts.ts";
import { ChartedCluster, IMAGE, VERSIONS } from "./kubernetes/charted-cluster.ts";
import { TOKENS } from "./kubernetes/credentials.ts";
import { HTTP_PORT, pod } from "./kubernetes/objects.ts";
import { balanceService, type ServiceBalancer } from "./kubernetes/service-balancer.ts";
import { ServiceEndpoints } from "./kubernetes/service-endpoints.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";
import { NumberedLines, SteadyRequests } from "./upgrade-load.ts";

const NAMESPACE = "upgrade";
const RESUMABLE = 10;
const OF_KUBECTL = 3;
/** The node has not the CPU that a cluster has. */
const VALUES = {
  "image.repository": IMAGE,
  "gateway.shutdownGracePeriodSeconds": "600",
  "gateway.resources.requests.cpu": "10m",
  "gateway.config.workers": "1",
  "ingress.enabled": "true",
  "ingress.replicaCount": "1",
  "ingress.config.workers": "1",
  "ingress.service.type": "ClusterIP",
  "ingress.service.externalTrafficPolicy": "",
  "ingress.resources.requests.cpu": "10m",
};

/** Three minutes, with a node of its own: behind in-cluster.test.ts it finds what that leaves. SLUICE_FULL=1 has it. */
describeFull(["cluster", "helm"], "an upgrade in the cluster", () => {
  let charted: ChartedCluster;
  let endpoints: ServiceEndpoints;
  let gateway: ServiceBalancer;
  /** For connections that are never cut. */
  let steady: ServiceBalancer;
  let frontDoor: ServiceBalancer;
  const sessions: NumberedLines[] = [];
  const kubectls: KubectlSession[] = [];
  let requests: Readonly<Record<string, SteadyRequests>> = {};
  const rows: string[] = [];
  let isShown = false;

  const kubectl = (...args: string[]): Promise<string> => charted.kubectl("-n", NAMESPACE, ...args);
  const helm = (...args: string[]): Promise<string> =>
    charted.helm(...args, "--namespace", NAMESPACE, "--wait", "--timeout", "500s");

  beforeAll(async () => {
    const cluster = inject("cluster") as ClusterAddresses;
    charted = await ChartedCluster.create(cluster);
    await charted.importImage();
    await charted.createNamespace(NAMESPACE, "restricted");
    await applyObjects(charted.kubectlProgram, cluster.adminKubeconfig, frontDoorObjects());
    await charted.kubectl("wait", "--for=condition=Ready", "pod/front", "--timeout=60s");
    endpoints = await ServiceEndpoints.follow(cluster.adminKubeconfig);
    [gateway, steady, frontDoor] = await Promise.all([
      balanceService(endpoints, [NAMESPACE, "sluice-gateway", 6443]),
      balanceService(endpoints, [NAMESPACE, "sluice-gateway", 6443]),
      balanceService(endpoints, [NAMESPACE, "sluice-ingress", 8080]),
    ]);
  }, 300_000);
  afterAll(async () => {
    for (const session of sessions) session.stop();
    for (const { child } of kubectls) child.kill();
    await Promise.all(Object.values(requests).map((each) => each.stop()));
    await Promise.all([gateway, steady, frontDoor].map((balancer) => balancer?.close()));
    await endpoints?.close();
    await charted.kubectl("delete", "--ignore-not-found", "pod/front", "service/front", "ingress/front");
    await charted.remove(NAMESPACE);
  }, 120_000);

  const openSessions = (): void => {
    for (let count = 0; count < RESUMABLE; count++) {
      sessions.push(new NumberedLines(`https://127.0.0.1:${gateway.port}`));
    }
    for (let count = 0; count < OF_KUBECTL; count++) kubectls.push(openKubectl(charted, steady.port));
  };
  const newSession = async (): Promise<void> => {
    const session = openKubectl(charted, steady.port);
    expect(await session.finish()).toBe("typed:now\n");
  };
  /** Of what a step took, and of what was going on meanwhile. */
  const step = async (command: string, work: () => Promise<unknown>): Promise<void> => {
    const startMs = performance.now();
    const before = Object.values(requests).map(({ count }) => count);
    await work();
    const counts = Object.values(requests).map(({ count }, index) => count - (before[index] ?? 0));
    const failed = Object.values(requests).flatMap(({ failures }) => failures).length;
    const resumed = sessions.reduce((sum, { resumptions }) => sum + resumptions, 0);
    const seconds = ((performance.now() - startMs) / 1_000).toFixed(0);
    rows.push(`| ${command} | ${seconds} | ${counts.join(" + ")} | ${failed} | ${resumed} |`);
  };
  /** Every connection breaks; each session comes back through any replica. */
  const cutAll = async (times: number): Promise<void> => {
    gateway.cutAll();
    await eventually(
      () =>
        `each session is resumed: ${sessions.map(({ resumptions, problem }) => resumptions + problem).join()}`,
      () => sessions.every(({ resumptions }) => resumptions >= times),
      { timeoutMs: 120_000 },
    );
  };

  it("is installed, and tests itself", async () => {
    const set = Object.entries(VALUES).map(([name, value]) => `${name}=${value}`);
    await helm("install", "sluice", "sluice-0.1.0.tgz", "--set", set.join(","));
    const output = await charted.helm("test", "sluice", "--namespace", NAMESPACE, "--timeout", "60s");
    expect(output.match(/Phase:\s+Succeeded/g)).toHaveLength(2);
    await eventually("they are behind their Services", () => {
      const counts = ["gateway", "ingress"].map(
        (name) => endpoints.addresses(NAMESPACE, `sluice-${name}`).length,
      );
      return counts.join() === "2,1";
    });
  }, 600_000);

  it("loses no session and no request, forwards and back", async () => {
    const api = `https://127.0.0.1:${steady.port}/api/v1/namespaces/default/pods/web`;
    const front = `http://127.0.0.1:${frontDoor.port}/`;
    const authorization = { authorization: `Bearer ${TOKENS.viewer.token}` };
    requests = {
      api: new SteadyRequests(api, authorization, false),
      kept: new SteadyRequests(front, { host: "front.example" }, true),
      single: new SteadyRequests(front, { host: "front.example" }, false),
    };
    openSessions();
    await eventually("each session runs", () => sessions.every(({ isEchoed }) => isEchoed), {
      timeoutMs: 120_000,
    });
    await step("connections cut", () => cutAll(1));
    await step(`\`helm upgrade\` to ${VERSIONS.new}, connections cut after it`, async () => {
      await helm(
        "upgrade",
        "sluice",
        "sluice-0.1.0.tgz",
        "--reuse-values",
        "--set",
        `image.tag=${VERSIONS.new}`,
      );
      await newSession();
      await cutAll(2);
    });
    expect(await imagesOfReady()).toEqual([`${IMAGE}:${VERSIONS.new}`]);
    await step("`helm rollback`, connections cut after it", async () => {
      await helm("rollback", "sluice", "1");
      await newSession();
      await cutAll(3);
    });
    expect(await imagesOfReady()).toEqual([`${IMAGE}:${VERSIONS.old}`]);
    const lines = await Promise.all(sessions.map((session) => session.finish()));
    for (const { sent, returned } of lines) expect(returned).toBe(sent);
    // They had begun before the upgrade, and no client of theirs resumes: their replica drained with them.
    for (const session of kubectls) expect(await session.finish()).toBe("typed:now\n");
    for (const [name, each] of Object.entries(requests)) {
      await each.stop();
      expect([name, each.failures]).toEqual([name, []]);
      expect(each.count).toBeGreaterThan(100);
    }
    expect([...gateway.failures, ...steady.failures, ...frontDoor.failures]).toEqual([]);
    rows.push(
      "",
      `${RESUMABLE} resumable sessions: ${lines.reduce((sum, { sent }) => sum + sent, 0)} lines sent, as many returned in order. ${OF_KUBECTL} of kubectl: ended as they were asked to. New sessions after each step: all. Requests sent again, as their kept connection was closed: ${requests["kept"]?.repeated}.`,
    );
    isShown = true;
  }, 1_200_000);

  it("is removed with everything that it made", async () => {
    const drained = async (): Promise<boolean> =>
      (await kubectl("get", "pods", "--output=name")).trim().split("\n").length === 3;
    await eventually("replicas without sessions end", drained, { timeoutMs: 120_000, intervalMs: 500 });
    await helm("uninstall", "sluice");
    const kinds = await charted.kubectl("api-resources", "--namespaced", "--verbs=list", "--output=name");
    const named = kinds.trim().split("\n").join(",");
    let left: readonly string[] = [];
    const isNothingLeft = async (): Promise<boolean> => {
      const own = "--selector=app.kubernetes.io/instance=sluice";
      const kindsBeyond = "clusterroles,clusterrolebindings,ingressclasses";
      const output = await Promise.all([
        kubectl("get", named, "--ignore-not-found", "--output=name"),
        charted.kubectl("get", kindsBeyond, own, "--output", `jsonpath=${OF_RELEASE}`),
      ]);
      // What every namespace has, and Events, which expire.
      const isForeign = /^$|^event|\/kube-root-ca\.crt$|^serviceaccount\/default$/;
      left = output.flatMap((names) => names.split("\n")).filter((name) => !isForeign.test(name));
      return left.length === 0;
    };
    await eventually(() => `nothing is left: ${left.join()}`, isNothingLeft, {
      timeoutMs: 120_000,
      intervalMs: 1_000,
    });
    if (!isShown) return;
    writeEvidence(
      "upgrade",
      `| step | seconds | requests (API + front door on kept and on single connections) | failed in all | resumptions in all |\n|---|---|---|---|---|\n${rows.join("\n")}\n\n\`helm test\` succeeds for both components; \`helm uninstall\` leaves nothing in the namespace, and nothing of the release beyond it.`,
    );
  }, 600_000);

  async function imagesOfReady(): Promise<string[]> {
    const selector = "--selector=app.kubernetes.io/instance=sluice";
    const text = await kubectl("get", "pods", selector, "--output=json");
    const { items } = JSON.parse(text) as { items: RunningPod[] };
    const running = items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    return [...new Set(running.map(({ spec }) => spec.containers[0]?.image ?? ""))];
  }
});

/** Names by lines, of this release alone: others of that name may be, or have been, in other namespaces. */
const OF_RELEASE = `{range .items[?(@.metadata.annotations.meta\\.helm\\.sh/release-namespace=="${NAMESPACE}")]}{.kind}/{.metadata.name}{"\\n"}{end}`;

interface RunningPod {
  readonly metadata: { readonly deletionTimestamp?: string };
  readonly spec: { readonly containers: readonly { readonly image: string }[] };
}

type KubectlSession = ReturnType<typeof openKubectl>;

/** `kubectl exec` of a command that ends with the line that it is sent. */
function openKubectl(charted: ChartedCluster, port: number) {
  const server = [
    "--server",
    `https://127.0.0.1:${port}`,
    "--insecure-skip-tls-verify",
    "--token",
    TOKENS.dev.token,
  ];
  const command = ["exec", "-i", "web", "-c", "main", "--", "sh", "-c", "read line; echo typed:$line"];
  const child = spawn(charted.kubectlProgram, [...server, ...command]);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const closed = once(child, "close");
  return {
    child,
    /** What it printed. */
    finish: async (): Promise<string> => {
      child.stdin.end("now\n");
      await closed;
      return `${stdout()}${stderr()}`;
    },
  };
}

/** In the namespace `default`: a pod that serves HTTP to others, its Service and its Ingress. */
function frontDoorObjects(): object[] {
  const command = ["httpd", "-f", "-p", `${HTTP_PORT}`, "-h", "/www"];
  const metadata = { name: "front", namespace: "default" };
  const backend = { service: { name: "front", port: { number: 80 } } };
  return [
    pod("front", [{ name: "main", command }]),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: { app: "front" }, ports: [{ port: 80, targetPort: HTTP_PORT }] },
    },
    {
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata,
      spec: {
        ingressClassName: "sluice",
        rules: [{ host: "front.example", http: { paths: [{ path: "/", pathType: "Prefix", backend }] } }],
      },
    },
  ];
}
