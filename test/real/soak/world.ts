import type { ChildProcess } from "node:child_process";
import { runFakeNode } from "../../../packages/lab/src/fake-node/run-fake-node.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { backend, INGRESS_CLASS, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { GatewayFiles } from "../../support/gateway-files.ts";
import { serveGateway } from "../../support/served-gateway.ts";
import { type MetricSamples, readMetricsOf } from "../../support/taken-path.ts";
import { startMisbehavingBackend, startSeededBackend } from "./backends.ts";
import { SNAPSHOT_FLAGS } from "./process-state.ts";

/** Pods by the node that they are on: each node as it is, and behind a network that is cut again and again. */
export const PODS = ["web", "web-ws", "web-cut", "web-ws-cut"] as const;
export type PodName = (typeof PODS)[number];

export interface SoakWorld {
  readonly authority: string;
  readonly ingressPort: number;
  readonly ingressTlsPort: number;
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
  /** SIGTERM to the gateway alone; how long it takes to exit, and with which code. */
  terminate(): Promise<{ readonly ms: number; readonly code: number | null }>;
  stop(): Promise<void>;
}

/** `sluice serve` before two nodes with two networks each, and three backends. `users`: the kinds of sessions. */
export async function startSoakWorld(users: readonly string[], workers: number): Promise<SoakWorld> {
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
  const files = new GatewayFiles({
    nodes: nodes.flatMap(({ name, port, declaredFeatures }, index) => [
      { name, port, declaredFeatures },
      { name: `${name}-cut`, port: (networks[index] as FaultProxy).port, declaredFeatures },
    ]),
    pods: PODS.map((name) => ({ name, nodeName: name, container: "main", uid: name })),
    users: users.map((name) => `token-${name},soak-${name},${name},system:masters`),
    manifests: [
      INGRESS_CLASS,
      ...serviceObjects("plain", [{ port: plain }]),
      ...serviceObjects("h2c", [{ port: h2c }], { appProtocol: "kubernetes.io/h2c" }),
      ...serviceObjects("bad", [{ port: bad }]),
      ...paths.map(({ name, ...rule }) =>
        ingressObject(name, { rules: [{ host: `${name}.example`, http: { paths: [rule] } }] }),
      ),
    ],
    listeners: { ingress: { httpPort: 0, httpsPort: 0, allowedEndpointAddresses: ["127.0.0.0/8"] } },
    timeouts: { shutdownGracePeriod: "5s", lingerIdle: "10s" },
    configuration: {
      upstreamProbes: { nodes: { tcpSocket: {}, periodSeconds: 1 } },
      limits: { maxConnectionsPerAddress: 10_000 },
      workers,
    },
  });
  const { folder } = files;
  const release = async (): Promise<void> => {
    await Promise.all([...backends, ...networks, ...nodes].map((part) => part.close()));
    files.remove();
  };
  try {
    const served = await serveGateway(files.configurationFile, {
      folder,
      environment: { NODE_OPTIONS: SNAPSHOT_FLAGS },
    });
    const { child, ready } = served;
    return {
      authority: served.authority,
      ingressPort: Number(new URL(ready.ingress?.httpUrl ?? "").port),
      ingressTlsPort: Number(new URL(ready.ingress?.httpsUrl ?? "").port),
      adminUrl: ready.adminUrl,
      child,
      folder,
      tokenOf: (name) => `token-${name}`,
      log: served.logLines,
      tail: () => served.log().slice(-2_000),
      metrics: () => readMetricsOf(ready.adminUrl),
      cutNodes: () => {
        for (const network of networks) network.cutAll();
      },
      endBackendConnections: () => {
        for (const each of backends) each.endConnections();
      },
      terminate: async () => {
        const startMs = performance.now();
        child.kill("SIGTERM");
        const [code] = await served.exited;
        return { ms: performance.now() - startMs, code };
      },
      stop: async () => {
        await served.stop();
        await release();
      },
    };
  } catch (error) {
    await release();
    throw error;
  }
}
