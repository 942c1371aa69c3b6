import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export const PLAIN_TOKEN = "plain-gateway-token";

export interface PlainGatewayOptions {
  readonly kubeletPort: number;
  readonly declaredFeatures?: readonly string[];
  /** Go durations by their names in the file. */
  readonly timeouts?: Readonly<Record<string, string>>;
  /** Anything else of a GatewayConfiguration. */
  readonly more?: Readonly<Record<string, unknown>>;
}

/** The files of a gateway over plain HTTP with one node `node` and one pod `default/web`; the user `tester` has PLAIN_TOKEN. */
export class PlainGatewayFiles {
  readonly configurationFile: string;
  readonly #folder = mkdtempSync(path.join(tmpdir(), "sluice-plain-"));

  constructor(options: PlainGatewayOptions) {
    this.configurationFile = this.write(
      "gateway.json",
      JSON.stringify({
        apiVersion: "sluice.dev/v1alpha1",
        kind: "GatewayConfiguration",
        listeners: { apiServer: { port: 0 }, admin: { port: 0 } },
        cluster: { manifests: [this.write("cluster.json", JSON.stringify(clusterOf(options)))] },
        authentication: {
          tokenAuthFile: this.write("tokens.csv", `${PLAIN_TOKEN},tester,uid-1,"dev,ops"\n`),
        },
        kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
        timeouts: options.timeouts ?? {},
        logging: { level: "info" },
        ...options.more,
      }),
    );
  }

  /** Returns the path of the file. */
  write(name: string, text: string): string {
    const file = path.join(this.#folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function clusterOf({ kubeletPort, declaredFeatures = [] }: PlainGatewayOptions): object {
  return {
    apiVersion: "v1",
    kind: "List",
    items: [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } },
      {
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: "node" },
        status: {
          addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
          daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
          declaredFeatures: [...declaredFeatures],
        },
      },
      {
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "web", namespace: "default", uid: "u1" },
        spec: { nodeName: "node", containers: [{ name: "main", image: "x" }] },
        status: { phase: "Running" },
      },
    ],
  };
}
