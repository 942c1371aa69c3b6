import { createSelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import type { Ingress, IngressAddress } from "../../src/api/networking-objects.ts";
import type { RunningGateway } from "../../src/app/app.ts";
import { resourceOfKind } from "./api-server/resources.ts";
import { type DoorCluster, type DoorSource, startDoorCluster } from "./door-cluster.ts";
import { type EchoPod, startEchoPod } from "./echo-service.ts";
import { eventually } from "./eventually.ts";
import { type CertificatePair, GatewayFiles } from "./gateway-files.ts";
import type { MetricSamples } from "./taken-path.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

export const INGRESS_CLASS = {
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name: "sluice" },
  spec: { controller: "sluice.dev/ingress-controller" },
};

let made: Promise<CertificatePair> | undefined;

/**
 * RSA, as front doors generate it, but generated once: a key of 2,048 bits costs more than the rest
 * of a start.
 */
function defaultPair(): Promise<CertificatePair> {
  made ??= createSelfSignedCertificate(["ingress.sluice.dev"], "ingress.sluice.dev", "rsa").then(
    ({ certPem: cert, keyPem: key }) => ({ cert, key }),
  );
  return made;
}

/**
 * A gateway in this process with an ingress listener. Its routes come from a manifest file or a
 * live API, and Services have echoing pods.
 */
export class FrontDoor {
  readonly #cluster: DoorCluster;
  readonly #pods: EchoPod[] = [];
  readonly #gateway: TestGateway;

  private constructor(cluster: DoorCluster, gateway: TestGateway) {
    this.#cluster = cluster;
    this.#gateway = gateway;
  }

  static async start(
    objects: readonly object[],
    ingress: object = {},
    more: object = {},
    source: DoorSource = "manifests",
  ): Promise<FrontDoor> {
    const files = new GatewayFiles();
    const cluster = await startDoorCluster(source, files.folder);
    cluster.write([INGRESS_CLASS, ...objects]);
    const { cert, key } = await defaultPair();
    const gateway = await startTestGateway(
      {
        scheme: "http",
        logLevel: "info",
        users: ["front-door-token,user,1,system:masters"],
        listeners: {
          ingress: {
            address: "127.0.0.1",
            httpPort: 0,
            httpsPort: 0,
            publishedAddresses: ["192.0.2.1"],
            allowedEndpointAddresses: ["127.0.0.0/8"],
            defaultCertificate: {
              certFile: files.write("default.crt", cert),
              keyFile: files.write("default.key", key),
            },
            ...ingress,
          },
        },
        configuration: { cluster: cluster.configuration, ...more },
      },
      files,
    );
    return new FrontDoor(cluster, gateway);
  }

  get folder(): string {
    return this.#gateway.files.folder;
  }

  get gateway(): RunningGateway {
    return this.#gateway.running;
  }

  /** Does what SIGHUP does, with the same configuration. */
  reload(): Promise<void> {
    return this.#gateway.reload();
  }

  get httpPort(): number {
    return Number(new URL(this.gateway.ingress?.httpUrl ?? "").port);
  }

  get httpsPort(): number {
    return Number(new URL(this.gateway.ingress?.httpsUrl ?? "").port);
  }

  get logged(): readonly string[] {
    return this.#gateway.logLines;
  }

  /** Replaces the cluster's objects. The gateway notices by itself. */
  write(objects: readonly object[]): void {
    this.#cluster.write([INGRESS_CLASS, ...objects]);
  }

  get isLive(): boolean {
    return this.#cluster.server !== undefined;
  }

  /** The addresses in an Ingress's status, according to the live API. */
  publishedAddresses(name: string, namespace = "default"): readonly IngressAddress[] {
    const found = this.#cluster.server?.store.get(resourceOfKind("Ingress"), namespace, name);
    return (found as unknown as Ingress | undefined)?.status?.loadBalancer?.ingress ?? [];
  }

  /** Adds a pod behind a Service; `serviceObjects` takes it. */
  async addPod(service: string, pod = `${service}-1`): Promise<EchoPod> {
    const started = await startEchoPod(service, pod);
    this.#pods.push(started);
    return started;
  }

  /** Resolves when the routes of this many Ingresses are in force. */
  async serves(ingresses: number): Promise<void> {
    await eventually(
      () => `routes of ${ingresses} Ingresses; logged: ${this.logged.join("").slice(-2000)}`,
      async () => (await this.readMetrics()).get("sluice_ingress_objects") === ingresses,
    );
  }

  readMetrics(): Promise<MetricSamples> {
    return this.#gateway.readMetrics();
  }

  async stop(): Promise<void> {
    await this.#gateway.shutDown();
    await this.#cluster.stop();
    await Promise.all(this.#pods.map((pod) => pod.stop()));
    await this.#gateway.stop();
  }
}

/**
 * A Service with port 8080 (named `portName`, if any) and one EndpointSlice for each pod, because
 * each pod has its own port here.
 */
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
