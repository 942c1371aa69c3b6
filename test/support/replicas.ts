import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { onTestFinished } from "vitest";
import { Target } from "../../packages/client/src/index.ts";
import type { FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import type { RunningGateway } from "../../src/app/app.ts";
import type { startWorkers } from "../../src/app/runtime/primary.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { compiledSources } from "./built-program.ts";
import { runWebNode } from "./fake-nodes.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { type CertificatePair, GatewayFiles, TESTER_TOKEN } from "./gateway-files.ts";
import { type ServedGateway, type ServeOptions, serveGateway } from "./served-gateway.ts";
import { issueCertificate, type TestCertificate } from "./test-certificates.ts";
import { startConfigured } from "./test-gateway.ts";

export type RunningWorkers = Awaited<ReturnType<typeof startWorkers>>;

/** The key with which all replicas sign the names of sessions. */
export const SESSION_KEY = "a key of at least thirty-two characters";
const ENDLESS = { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 };

export interface ReplicasOptions {
  readonly count?: number;
  /** Further fields of `listeners.peers` for the replica with this index. */
  readonly peers?: (index: number) => object;
  /** Further fields of `listeners`. */
  readonly listeners?: (index: number) => object;
  /** The certificate of their API listeners. */
  readonly tls?: CertificatePair;
  /** Of the node's pod. */
  readonly ports?: ReadonlyMap<number, number>;
  /** Further objects of the cluster. */
  readonly manifests?: readonly object[];
  readonly configuration?: object;
  readonly timeouts?: object;
  readonly users?: readonly string[];
  /**
   * The replicas find each other by EndpointSlices of `default/sluice-peers`, none of them ready,
   * instead of by a list.
   */
  readonly bySlices?: boolean;
}

/** One replica: its files, and the wire by which the others reach its peers listener. */
export interface Replica {
  readonly files: GatewayFiles;
  readonly wire: FaultProxy;
  readonly log: string[];
}

/**
 * What the replicas of one gateway share: a node with the pod `default/web`, an authority, and the
 * wires between them.
 */
export class ReplicaFiles {
  readonly node: FakeNode;
  readonly authority: TestCertificate;
  readonly replicas: readonly Replica[];

  private constructor(node: FakeNode, authority: TestCertificate, replicas: readonly Replica[]) {
    this.node = node;
    this.authority = authority;
    this.replicas = replicas;
  }

  static async create({
    count = 2,
    peers,
    listeners,
    tls: apiTls,
    ports,
    manifests = [],
    configuration = {},
    timeouts = {},
    users = [],
    bySlices = false,
  }: ReplicasOptions = {}): Promise<ReplicaFiles> {
    // These tests are about the path, which keeps a half-close if the runtime does.
    const node = await runWebNode({ ports, limits: { forwardGraceMs: Number.POSITIVE_INFINITY } });
    const authority = await issueCertificate({ commonName: "peers' authority" });
    const leaf = await issueCertificate({ commonName: "sluice-peer" }, authority);
    // Port 1, because nothing listens there until a replica starts.
    const wires = await Promise.all(Array.from({ length: count }, () => startFaultProxy(1, ENDLESS)));
    const addresses = wires.map(({ port }) => `127.0.0.1:${port}`);
    const found = bySlices ? { service: { name: "sluice-peers" } } : { addresses };
    const replicas = wires.map((wire, index) => {
      const files = new GatewayFiles();
      files.write("session.key", `${SESSION_KEY}\n`);
      files.write("peer-ca.crt", authority.cert);
      files.write("peer.crt", leaf.cert);
      files.write("peer.key", leaf.key);
      const tls = { certFile: "peer.crt", keyFile: "peer.key", certificateAuthorityFile: "peer-ca.crt" };
      files.configure({
        nodes: [{ name: node.name, port: node.port }],
        pods: [{ name: "web", nodeName: node.name, container: "main", uid: "web" }],
        users,
        tls: apiTls,
        manifests: [...manifests, ...(bySlices ? wires.map(({ port }) => peerSlice(port)) : [])],
        timeouts: { shutdownGracePeriod: "0s", ...timeouts },
        listeners: {
          peers: { port: 0, tls, sessionKeyFile: "session.key", ...found, ...peers?.(index) },
          ...listeners?.(index),
        },
        configuration,
      });
      return { files, wire, log: [] };
    });
    return new ReplicaFiles(node, authority, replicas);
  }

  /** Starts the replica with this index in this process. */
  async start(index: number): Promise<RunningGateway> {
    const { files, wire, log } = this.replicas[index] as Replica;
    const running = await startConfigured(files, log);
    wire.targetPort = portOf(running.listening.peers);
    return running;
  }

  /**
   * Starts it as a primary with this many workers, with the compiled program, because only that can
   * start processes.
   */
  async startWorkers(index: number, count: number): Promise<RunningWorkers> {
    const { files, wire } = this.replicas[index] as Replica;
    const primary: typeof import("../../src/app/runtime/primary.ts") = await import(
      pathToFileURL(path.join(compiledSources(), "app/runtime/primary.js")).href
    );
    const { configurationFile } = files;
    const configurationText = readFileSync(configurationFile, "utf8");
    const forWorkers = { configurationText, configurationFile, flags: {} };
    const configuration = parseConfiguration(configurationText, configurationFile);
    // With this process' conditions, workers would import sources.
    process.execArgv = [];
    const running = await primary.startWorkers(configuration, count, forWorkers);
    wire.targetPort = portOf(running.listening.peers);
    return running;
  }

  /** Starts it as a process of its own. */
  async serve(index: number, options?: ServeOptions): Promise<ServedGateway> {
    const { files, wire } = this.replicas[index] as Replica;
    const served = await serveGateway(files.configurationFile, options);
    wire.targetPort = portOf(served.ready.peersUrl);
    return served;
  }

  async stop(): Promise<void> {
    await this.node.close();
    for (const { files, wire } of this.replicas) {
      files.remove();
      await wire.close();
    }
  }
}

/** Two replicas with two workers each, which end with the test. */
export async function startWorkerReplicas(): Promise<readonly [RunningWorkers, RunningWorkers]> {
  const files = await ReplicaFiles.create({ configuration: { logging: { level: "warn" } } });
  onTestFinished(() => files.stop());
  const start = async (index: number): Promise<RunningWorkers> => {
    const running = await files.startWorkers(index, 2);
    onTestFinished(() => running.shutDown());
    return running;
  };
  return Promise.all([start(0), start(1)]);
}

/** The host and port of a gateway's API listener. */
export function authorityOf({ apiServerUrl = "" }: Pick<RunningWorkers, "apiServerUrl">): string {
  return new URL(apiServerUrl).host;
}

/**
 * One EndpointSlice for each replica: on one machine they have the same address and different
 * ports.
 */
function peerSlice(port: number): object {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `sluice-peers-${port}`,
      namespace: "default",
      labels: { "kubernetes.io/service-name": "sluice-peers" },
    },
    addressType: "IPv4",
    ports: [{ name: "peer", port, protocol: "TCP" }],
    endpoints: [
      { addresses: ["127.0.0.1"], conditions: { ready: false, serving: false, terminating: true } },
    ],
  };
}

export function targetAt(url: string, token: string = TESTER_TOKEN): Target {
  const tls = { insecureSkipVerify: true };
  return new Target({ url, proxy: "none", tls, headers: () => [["Authorization", `Bearer ${token}`]] });
}

export function portOf(url: string | undefined): number {
  return Number(new URL(url ?? "").port);
}

export async function readJson(url: string): Promise<unknown> {
  return (await fetch(url)).json();
}
