import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { runFakeNode } from "../../../src/fake-node/index.ts";
import { builtProgram } from "../../support/built-program.ts";
import { eventually } from "../../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { backend, INGRESS_CLASS, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { collect } from "../../support/kubectl.ts";
import { type MetricSamples, readMetricsOf } from "../../support/taken-path.ts";
import { startMisbehavingBackend, startSeededBackend } from "./backends.ts";
import { SNAPSHOT_FLAGS } from "./process-state.ts";

/** Pods by the node that they are on: each node as it is, and behind a network that is cut again and again. */
export const PODS = ["web", "web-ws", "web-cut", "web-ws-cut"] as const;
export type PodName = (typeof PODS)[number];

export interface SoakWorld {
  readonly authority: string;
  readonly ingressPort: number;
  readonly adminUrl: string;
  readonly child: ChildProcess;
  /** Where the process runs, and writes heap snapshots. */
  readonly folder: string;
  /** The bearer token of the user `soak-NAME`, where sessions of one kind are told apart in log and metrics. */
  tokenOf(name: string): string;
  /** Every JSON line of the log so far. */
  log(): readonly Record<string, unknown>[];
  /** The end of what it wrote, which is where a stack would be. */
  tail(): string;
  metrics(): Promise<MetricSamples>;
  /** Connections to the nodes behind cut networks are reset. */
  cutNodes(): void;
  /** Backends end the connections that the gateway keeps for later. */
  endBackendConnections(): void;
  stop(): Promise<void>;
}

/** `sluice serve` before two nodes with two networks each, and three backends. `users`: the kinds of sessions. */
export async function startSoakWorld(users: readonly string[], workers: number): Promise<SoakWorld> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-soak-"));
  const command = ["/bin/sh", "-c", "exec cat"];
  const nodes = await Promise.all(
    [false, true].map((declaresWebSockets) => {
      const name = declaresWebSockets ? "web-ws" : "web";
      const pods = [name, `${name}-cut`].map((pod) => ({
        namespace: "default",
        name: pod,
        uid: pod,
        containers: [{ name: "main", command }],
      }));
      return runFakeNode({ name, declaresWebSockets, pods });
    }),
  );
  const networks: FaultProxy[] = await Promise.all(
    nodes.map(({ port }) => startFaultProxy(port, { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 })),
  );
  const backends = await Promise.all([
    startSeededBackend("h1"),
    startSeededBackend("h2c"),
    startMisbehavingBackend(1),
  ]);
  const [plain, h2c, bad] = backends.map(({ port }) => port) as [number, number, number];
  const paths = ["plain", "h2c", "bad"].map((name) => ({
    path: "/",
    pathType: "Prefix",
    backend: backend(name),
    name,
  }));
  const items = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
    ...nodes.flatMap(({ name, port, declaredFeatures }, index) => [
      nodeObject(name, port, declaredFeatures),
      nodeObject(`${name}-cut`, (networks[index] as FaultProxy).port, declaredFeatures),
    ]),
    ...PODS.map((name) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "default", uid: name },
      spec: { nodeName: name, containers: [{ name: "main", image: "x", stdin: true }] },
      status: { phase: "Running" },
    })),
    INGRESS_CLASS,
    ...serviceObjects("plain", [{ port: plain }]),
    ...serviceObjects("h2c", [{ port: h2c }], { appProtocol: "kubernetes.io/h2c" }),
    ...serviceObjects("bad", [{ port: bad }]),
    ...paths.map(({ name, ...rule }) =>
      ingressObject(name, { rules: [{ host: `${name}.example`, http: { paths: [rule] } }] }),
    ),
  ];
  writeFileSync(path.join(folder, "cluster.json"), JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const tokens = users.map((name) => `token-${name},soak-${name},${name},system:masters`);
  writeFileSync(path.join(folder, "tokens.csv"), `${tokens.join("\n")}\n`, { mode: 0o600 });
  const configurationFile = path.join(folder, "gateway.json");
  writeFileSync(
    configurationFile,
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      listeners: {
        apiServer: { port: 0 },
        admin: { port: 0 },
        ingress: { httpPort: 0, httpsPort: 0, allowedEndpointAddresses: ["127.0.0.0/8"] },
      },
      cluster: { manifests: ["cluster.json"] },
      authentication: { tokenAuthFile: "tokens.csv" },
      kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
      upstreamProbes: { nodes: { tcpSocket: {}, periodSeconds: 1 } },
      limits: { maxConnectionsPerAddress: 10_000 },
      timeouts: { shutdownGracePeriod: "5s", lingerIdle: "1s" },
      workers,
      logging: { level: "info" },
    }),
  );
  const child = spawn(process.execPath, [builtProgram(), "serve", "--config", configurationFile], {
    cwd: folder,
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, NODE_OPTIONS: SNAPSHOT_FLAGS },
  });
  const text = collect(child.stderr);
  const log = () =>
    text()
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 20_000);
      await exited;
      clearTimeout(timer);
    }
    await Promise.all([...backends, ...networks, ...nodes].map((part) => part.close()));
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const ready = (await eventually(
      () => `the gateway is ready; it says ${text().slice(-2_000)}`,
      () => log().find(({ msg }) => msg === "the gateway is ready"),
      { timeoutMs: 60_000 },
    )) as { apiServerUrl: string; adminUrl: string; ingress: { httpUrl: string } };
    return {
      authority: new URL(ready.apiServerUrl).host,
      ingressPort: Number(new URL(ready.ingress.httpUrl).port),
      adminUrl: ready.adminUrl,
      child,
      folder,
      tokenOf: (name) => `token-${name}`,
      log,
      tail: () => text().slice(-2_000),
      metrics: () => readMetricsOf(ready.adminUrl),
      cutNodes: () => {
        for (const network of networks) network.cutAll();
      },
      endBackendConnections: () => {
        for (const each of backends) each.endConnections();
      },
      stop,
    };
  } catch (error) {
    child.kill("SIGKILL");
    await stop();
    throw error;
  }
}

function nodeObject(name: string, port: number, declaredFeatures: readonly string[]): object {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name },
    status: {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
      declaredFeatures,
    },
  };
}
