import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Ingress, IngressAddress } from "../../src/api/networking-objects.ts";
import { type RunningGateway, startGateway } from "../../src/app/app.ts";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { resourceOfKind } from "./api-server/resources.ts";
import { type DoorCluster, type DoorSource, startDoorCluster } from "./door-cluster.ts";
import { type EchoPod, startEchoPod } from "./echo-service.ts";
import { eventually } from "./eventually.ts";
import { type MetricSamples, parseMetrics } from "./taken-path.ts";

export const INGRESS_CLASS = {
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name: "sluice" },
  spec: { controller: "sluice.dev/ingress-controller" },
};

/** A gateway in this process with an ingress listener, fed by a manifest file or a live API, and echoing pods behind Services. */
export class FrontDoor {
  readonly folder: string;
  readonly #cluster: DoorCluster;
  readonly #pods: EchoPod[] = [];
  readonly #logged: string[] = [];
  #gateway: RunningGateway | undefined;
  #reload: () => Promise<void> = async () => {};

  private constructor(folder: string, cluster: DoorCluster) {
    this.folder = folder;
    this.#cluster = cluster;
  }

  static async start(
    objects: readonly object[],
    ingress: object = {},
    more: object = {},
    source: DoorSource = "manifests",
  ): Promise<FrontDoor> {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-front-door-"));
    const cluster = await startDoorCluster(source, folder);
    const door = new FrontDoor(folder, cluster);
    door.write(objects);
    const file = path.join(door.folder, "gateway.json");
    writeFileSync(path.join(door.folder, "tokens.csv"), "front-door-token,user,1,system:masters\n");
    const configuration = {
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      listeners: {
        apiServer: { address: "127.0.0.1", port: 0 },
        admin: { address: "127.0.0.1", port: 0 },
        ingress: {
          address: "127.0.0.1",
          httpPort: 0,
          httpsPort: 0,
          publishedAddresses: ["192.0.2.1"],
          allowedEndpointAddresses: ["127.0.0.0/8"],
          ...ingress,
        },
      },
      cluster: cluster.configuration,
      authentication: { tokenAuthFile: "tokens.csv" },
      kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
      ...more,
    };
    const logger = createLogger({
      level: "info",
      destination: { write: (line) => void door.#logged.push(line) },
    });
    const parsed = parseConfiguration(JSON.stringify(configuration), file);
    const gateway = await startGateway(parsed, logger);
    door.#gateway = gateway;
    door.#reload = () => gateway.reload(parsed);
    return door;
  }

  get gateway(): RunningGateway {
    if (this.#gateway === undefined) throw new Error("not started");
    return this.#gateway;
  }

  /** What SIGHUP does, with the same configuration. */
  reload(): Promise<void> {
    return this.#reload();
  }

  get httpPort(): number {
    return Number(new URL(this.gateway.ingress?.httpUrl ?? "").port);
  }

  get httpsPort(): number {
    return Number(new URL(this.gateway.ingress?.httpsUrl ?? "").port);
  }

  get logged(): readonly string[] {
    return this.#logged;
  }

  /** Replaces the cluster. The gateway sees it by itself. */
  write(objects: readonly object[]): void {
    this.#cluster.write([INGRESS_CLASS, ...objects]);
  }

  get isLive(): boolean {
    return this.#cluster.server !== undefined;
  }

  /** What the live API says of where an Ingress is exposed. */
  publishedAddresses(name: string, namespace = "default"): readonly IngressAddress[] {
    const found = this.#cluster.server?.store.get(resourceOfKind("Ingress"), namespace, name);
    return (found as unknown as Ingress | undefined)?.status?.loadBalancer?.ingress ?? [];
  }

  /** A new pod behind a Service, to be named by `serviceObjects`. */
  async addPod(service: string, pod = `${service}-1`): Promise<EchoPod> {
    const started = await startEchoPod(service, pod);
    this.#pods.push(started);
    return started;
  }

  /** Resolves when routes of so many Ingresses are in force. */
  async serves(ingresses: number): Promise<void> {
    await eventually(
      () => `routes of ${ingresses} Ingresses; logged: ${this.#logged.join("").slice(-2000)}`,
      async () => (await this.readMetrics()).get("sluice_ingress_objects") === ingresses,
    );
  }

  async readMetrics(): Promise<MetricSamples> {
    return parseMetrics(await (await fetch(new URL("/metrics", this.gateway.adminUrl))).text());
  }

  async stop(): Promise<void> {
    await this.#gateway?.shutDown();
    await this.#cluster.stop();
    await Promise.all(this.#pods.map((pod) => pod.stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A Service with port 8080 (named `portName`, if any) and one EndpointSlice for each pod, for each has a port of its own here. */
export function serviceObjects(
  name: string,
  pods: readonly { readonly port: number; readonly ready?: boolean }[],
  {
    portName,
    appProtocol,
    namespace = "default",
  }: { portName?: string; appProtocol?: string; namespace?: string } = {},
): object[] {
  const named = portName === undefined ? {} : { name: portName };
  const port = { ...named, port: 8080, ...(appProtocol !== undefined && { appProtocol }) };
  return [
    { apiVersion: "v1", kind: "Service", metadata: { name, namespace }, spec: { ports: [port] } },
    ...pods.map(({ port: number, ready = true }, index) => ({
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: `${name}-${index}`,
        namespace,
        labels: { "kubernetes.io/service-name": name },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["127.0.0.1"], conditions: { ready } }],
      ports: [{ ...named, port: number }],
    })),
  ];
}

export function backend(name: string, port: number | string = 8080): object {
  return { service: { name, port: typeof port === "number" ? { number: port } : { name: port } } };
}

export function ingressObject(name: string, spec: object, metadata: object = {}): object {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace: "default", ...metadata },
    spec: { ingressClassName: "sluice", ...spec },
  };
}
