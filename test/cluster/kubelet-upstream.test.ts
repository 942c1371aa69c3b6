import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { describeReal } from "../support/real-parts.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { exchange, type HttpAnswer } from "./differential/raw-exchange.ts";
import { nodeConfiguration } from "./door-configurations.ts";
import { ADDRESSES, machineAddress, TOKENS } from "./kubernetes/credentials.ts";
import { clusterBinding } from "./kubernetes/objects.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

/** A Node object whose address is Sluice's. */
const RELAYED = "relayed-node";
const RBAC = "rbac.authorization.k8s.io/v1";
const SCRAPER = { kind: "ServiceAccount", metadata: { name: "scraper", namespace: "default" } };

/** What may be answered differently at any time: connections, and the time. */
const VOLATILE_HEADERS = ["date", "connection", "content-length", "transfer-encoding"];

/** Names, and not values, which change between two questions. */
function shapeOf({ status, headers, body }: HttpAnswer): object {
  const kept = Object.entries(headers).filter(([name]) => !VOLATILE_HEADERS.includes(name));
  return { status, headers: Object.fromEntries(kept), body: namesIn(headers["content-type"] ?? "", body) };
}

function namesIn(contentType: string, body: string): unknown {
  if (contentType.startsWith("application/json")) return [...new Set(fieldsOf(JSON.parse(body)))].sort();
  const metrics = [...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
  return metrics.length > 0 ? metrics.sort() : body;
}

function fieldsOf(value: unknown, at = ""): string[] {
  if (typeof value !== "object" || value === null) return [at];
  if (Array.isArray(value)) return value.flatMap((item) => fieldsOf(item, `${at}[]`));
  return Object.entries(value).flatMap(([name, field]) => fieldsOf(field, `${at}.${name}`));
}

const machine = machineAddress();

describeReal("cluster", "the kubelet behind Sluice", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-upstream-"));
  const pem = (name: string): string => readFileSync(path.join(cluster.credentials, name), "utf8");
  const kubectl = async (...args: string[]): Promise<string> => {
    const program = path.join(cluster.programs, "kubectl");
    const options = { maxBuffer: 64 * 1024 * 1024 };
    const all = ["--kubeconfig", cluster.adminKubeconfig, ...args];
    return (await promisify(execFile)(program, all, options)).stdout;
  };
  const callers: Record<string, { token?: string; cert?: string; key?: string }> = {};
  let sluice: ServedGateway | undefined;

  beforeAll(async () => {
    const status = {
      addresses: [{ type: "InternalIP", address: machine ?? ADDRESSES.sluiceNode }],
      daemonEndpoints: { kubeletEndpoint: { Port: cluster.kubeletPort } },
    };
    const rules = [{ apiGroups: [""], resources: ["nodes/metrics"], verbs: ["get"] }];
    const subject = { kind: "User", name: "system:serviceaccount:default:scraper" };
    await applyObjects(path.join(cluster.programs, "kubectl"), cluster.adminKubeconfig, [
      { apiVersion: "v1", ...SCRAPER },
      { apiVersion: RBAC, kind: "ClusterRole", metadata: { name: "scraper" }, rules },
      clusterBinding("scraper", "scraper", subject),
      // What system:kubelet-api-admin lacks of a kubelet's port.
      {
        apiVersion: RBAC,
        kind: "ClusterRole",
        metadata: { name: "sluice-kubelet" },
        rules: [{ apiGroups: [""], resources: ["nodes/checkpoint", "nodes/statusz"], verbs: ["*"] }],
      },
      clusterBinding("sluice-kubelet", "sluice-kubelet", {
        kind: "Group",
        name: "kubeadm:apiserver-kubelet",
      }),
      { apiVersion: "v1", kind: "Node", metadata: { name: RELAYED } },
    ]);
    await kubectl("patch", "node", RELAYED, "--subresource=status", "-p", JSON.stringify({ status }));
    Object.assign(callers, {
      scraper: { token: (await kubectl("create", "token", "scraper")).trim() },
      admin: { token: TOKENS.admin.token },
      viewer: { token: TOKENS.viewer.token },
      unknown: { token: "nobody's" },
      nobody: {},
      "the API server": {
        cert: pem("apiserver-kubelet-client.crt"),
        key: pem("apiserver-kubelet-client.key"),
      },
      alice: { cert: pem("alice.crt"), key: pem("alice.key") },
    });
    const file = path.join(folder, "node.json");
    writeFileSync(file, JSON.stringify(nodeConfiguration(cluster, machine)));
    sluice = await serveGateway(file);
  });
  afterAll(async () => {
    await sluice?.stop();
    await kubectl("delete", "node", RELAYED);
    rmSync(folder, { recursive: true });
  });

  const ask = (host: string, caller: string, target: string, method = "GET"): Promise<HttpAnswer> =>
    exchange(
      {
        url: `https://${host}:${cluster.kubeletPort}`,
        ca: pem("ca.crt"),
        kubeconfig: "",
        ...callers[caller],
      },
      { method, path: target },
    );
  const direct = (caller: string, target: string, method?: string) =>
    ask(ADDRESSES.kubelet, caller, target, method);
  const relayed = (caller: string, target: string, method?: string) =>
    ask(machine ?? ADDRESSES.sluiceNode, caller, target, method);
  /** The node goes on living: what differs three times differs. */
  const expectSame = async (caller: string, target: string, method?: string): Promise<number> => {
    for (let tries = 1; ; tries++) {
      const [straight, through] = [
        await direct(caller, target, method),
        await relayed(caller, target, method),
      ];
      try {
        expect(shapeOf(through)).toEqual(shapeOf(straight));
        return straight.status;
      } catch (error) {
        if (tries === 3) throw error;
      }
    }
  };

  it.each([
    ["scraper", "/metrics/resource", 200],
    ["scraper", "/metrics", 200],
    ["scraper", "/metrics/cadvisor", 200],
    ["scraper", "/metrics/probes", 200],
    ["scraper", "/stats/summary", 403],
    ["scraper", "/configz", 403],
    ["scraper", "/pods", 403],
    ["the API server", "/metrics/resource", 200],
    ["the API server", "/configz", 200],
    ["the API server", "/healthz", 200],
    ["the API server", "/healthz/ping", 200],
    ["the API server", "/pods", 200],
    ["the API server", "/runningpods/", 200],
    ["the API server", "/logs/", 200],
    ["the API server", "/logs", 307],
    ["the API server", "/logs/nosuch", 404],
    ["the API server", "/debug/pprof/cmdline", 200],
    ["the API server", "/nosuch", 404],
    ["admin", "/metrics/resource", 200],
    ["admin", "/debug/pprof/symbol", 200],
    ["viewer", "/metrics/resource", 403],
    ["viewer", "/healthz", 403],
    ["viewer", "/runningpods/", 403],
    ["viewer", "/statusz", 403],
    ["viewer", "/flagz", 403],
    ["alice", "/metrics", 403],
    ["alice", "/logs/", 403],
    ["unknown", "/metrics", 401],
    ["nobody", "/metrics", 401],
    ["nobody", "/healthz", 401],
  ])("%s gets the kubelet's answer to %s: %s", async (caller, target, status) => {
    expect(await expectSame(caller, target)).toBe(status);
  });

  it.each([
    ["admin", "PUT", "/debug/flags/v", 400],
    ["viewer", "PUT", "/debug/flags/v", 403],
    ["admin", "POST", "/checkpoint/default/nosuch/main", 404],
    ["admin", "DELETE", "/metrics/cadvisor", 200],
  ])("%s: %s %s: %s", async (caller, method, target, status) => {
    expect(await expectSame(caller, target, method)).toBe(status);
  });

  // Its status depends on the machine's disks.
  it.each([
    "/stats/summary",
    "/stats/summary?only_cpu_and_memory=true",
  ])("the same for %s", async (target) => {
    await expectSame("the API server", target);
  });

  it("refuses unauthorized callers of unknown paths, which the kubelet answers with 404 to everybody", async () => {
    expect((await direct("scraper", "/nosuch")).status).toBe(404);
    expect((await relayed("scraper", "/nosuch")).status).toBe(403);
  });

  it.skipIf(machine === undefined).each(["metrics", "metrics/resource", "configz", "logs/", "healthz"])(
    "kubectl get --raw of the node's proxy/%s is what the kubelet answers",
    async (target) => {
      const through = await kubectl("get", "--raw", `/api/v1/nodes/${RELAYED}/proxy/${target}`);
      const { headers, body } = await direct("the API server", `/${target}`);
      const contentType = headers["content-type"] ?? "";
      expect(namesIn(contentType, through)).toEqual(namesIn(contentType, body));
    },
  );

  it("follows the kubelet's answer as it comes", async () => {
    const { status, body } = await relayed("admin", "/debug/pprof/profile?seconds=1");
    expect(status).toBe(200);
    expect(body.slice(0, 2)).toBe("\x1f\x8b");
  });

  it("was refused nothing by the kubelet", () => {
    expect(sluice?.log()).not.toContain("refused the credentials");
  });
});
