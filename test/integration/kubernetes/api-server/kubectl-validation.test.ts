import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { KubectlRunner } from "../../../support/kubectl.ts";
import { describeReal, kubectlSample } from "../../../support/real-parts.ts";

const podWith = (probe: string) => `
apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers:
    - name: main
      image: web:1
      livenessProbe: ${probe}
`;
const deploymentWith = (probe: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers: [{ name: main, image: "web:1", readinessProbe: ${probe} }]
`;
const ingressWith = (spec: string, metadata = "name: web") => `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { ${metadata} }
spec: ${spec}
`;
const backend = "{ service: { name: web, port: { number: 80 } } }";

interface Row {
  readonly what: string;
  readonly manifest: string;
  /** What kubectl prints; absent: nothing. */
  readonly stderr?: readonly string[];
  readonly stdout?: string;
}

const good: readonly Row[] = [
  {
    what: "a probe",
    manifest: podWith("{ httpGet: { port: 80 } }"),
    stdout: "pod/web created (server dry run)\n",
  },
  {
    what: "an h2c probe",
    manifest: podWith("{ httpGet: { port: http, protocol: HTTP2 } }"),
    stdout: "pod/web created (server dry run)\n",
  },
  {
    what: "a gRPC probe over TLS",
    manifest: deploymentWith("{ grpc: { port: 80, mode: TLS } }"),
    stdout: "deployment.apps/web created (server dry run)\n",
  },
  {
    what: "an ingress",
    manifest: ingressWith(`{ defaultBackend: ${backend} }`),
    stdout: "ingress.networking.k8s.io/web created (server dry run)\n",
  },
  {
    what: "an ingress with the old annotation",
    manifest: ingressWith(
      `{ defaultBackend: ${backend} }`,
      'name: web, annotations: { kubernetes.io/ingress.class: "x" }',
    ),
    stdout: "ingress.networking.k8s.io/web created (server dry run)\n",
    stderr: [
      "Warning: annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead",
    ],
  },
];

const liveness = "spec.containers[0].livenessProbe";
const readiness = "spec.template.spec.containers[0].readinessProbe";
const bad: readonly Row[] = [
  {
    what: "a gRPC probe without a port",
    manifest: podWith("{ grpc: { service: s } }"),
    stderr: [
      `The Pod "web" is invalid: ${liveness}.grpc.port: Invalid value: 0: must be between 1 and 65535, inclusive`,
    ],
  },
  {
    what: "a probe with two handlers and a bad threshold",
    manifest: podWith("{ successThreshold: 2, exec: { command: [x] }, tcpSocket: { port: 1 } }"),
    stderr: [
      'The Pod "web" is invalid: ',
      `* ${liveness}.tcpSocket: Forbidden: may not specify more than 1 handler type`,
      `* ${liveness}.successThreshold: Invalid value: 2: must be 1`,
    ],
  },
  {
    what: "h2c over HTTPS in a template",
    manifest: deploymentWith("{ httpGet: { port: 1, protocol: HTTP2, scheme: HTTPS } }"),
    stderr: [
      `The Deployment "web" is invalid: ${readiness}.httpGet.protocol: Invalid value: "HTTP2": HTTP2 cannot be combined with scheme HTTPS`,
    ],
  },
  {
    what: "an ingress without anything",
    manifest: ingressWith("{}"),
    stderr: [
      'The Ingress "web" is invalid: spec: Invalid value: null: either `defaultBackend` or `rules` must be specified',
    ],
  },
  {
    what: "an ingress with a bad host and no pathType",
    manifest: ingressWith(
      `{ rules: [{ host: "1.2.3.4", http: { paths: [{ path: /, backend: ${backend} }] } }] }`,
    ),
    stderr: [
      'The Ingress "web" is invalid: ',
      '* spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
      "* spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
    ],
  },
];

describeReal("kubectl", "kubectl, of good and bad objects", () => {
  describe.each(
    kubectlSample().map((kubectl) => ({ kubectl, version: kubectl.version })),
  )("kubectl $version", ({ kubectl, version }) => {
    let server: TestApiServer;
    let runner: KubectlRunner;
    /** kubectl before 1.29 wants a document in protobuf before it asks for a dry run; it writes in earnest then. */
    const isOld = Number(version.split(".")[1]) < 29;
    const verb = isOld ? ["create", "--validate=false"] : ["apply", "--dry-run=server"];

    beforeAll(async () => {
      server = await TestApiServer.start({
        gates: FeatureGates.parse("H2CContainerProbe=true,GRPCContainerProbeTLS=true"),
      });
      runner = new KubectlRunner(kubectl, server);
    });
    afterAll(async () => {
      runner.remove();
      await server.stop();
    });

    const write = async (manifest: string) => {
      const file = path.join(runner.folder, "object.yaml");
      await writeFile(file, manifest);
      const { exitCode, stdout, stderr } = await runner.run([...verb, "-f", file]);
      if (isOld && exitCode === 0) await runner.run(["delete", "-f", file]);
      const ownWords = stderr.split("\n").filter((line) => !line.includes("Config not found"));
      return { exitCode, stdout, stderr: ownWords.join("\n") };
    };
    const lines = (texts: readonly string[]) => texts.map((line) => `${line}\n`).join("");

    it.each(good)("takes $what", async ({ manifest, stdout = "", stderr = [] }) => {
      const said = isOld ? stdout.replace(" (server dry run)", "") : stdout;
      expect(await write(manifest)).toEqual({ exitCode: 0, stdout: said, stderr: lines(stderr) });
      expect((await runner.run(["get", "pods,ingresses,deployments"])).stdout).toBe("");
    });

    it.each(bad)("shows why it refuses $what", async ({ manifest, stderr = [] }) => {
      expect(await write(manifest)).toEqual({ exitCode: 1, stdout: "", stderr: lines(stderr) });
    });
  });
});
