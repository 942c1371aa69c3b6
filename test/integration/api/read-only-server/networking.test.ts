import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../../../src/api/objects.ts";
import { answerApiRequest } from "../../../../src/api/read-only-server/answer-api-request.ts";
import { printerOf } from "../../../../src/api/read-only-server/columns.ts";
import { ClusterStore } from "../../../../src/cluster/cluster-store.ts";
import { parseManifests } from "../../../../src/cluster/manifests.ts";
import { collect } from "../../../support/kubectl.ts";
import { describeReal, kubectls } from "../../../support/real-parts.ts";
import { runnerAt } from "./http-adapter.ts";

const text = `
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: { name: sluice, creationTimestamp: "2020-01-01T00:00:00Z" }
spec: { controller: sluice.dev/ingress-controller }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: front, namespace: default, creationTimestamp: "2020-01-01T00:00:00Z", labels: { app: front } }
spec:
  ingressClassName: sluice
  tls: [{ hosts: [a.example.com], secretName: front-tls }]
  rules:
    - host: a.example.com
      http: { paths: [{ path: /, pathType: Prefix, backend: { service: { name: app, port: { number: 80 } } } }] }
---
apiVersion: v1
kind: Service
metadata: { name: app, namespace: default, creationTimestamp: "2020-01-01T00:00:00Z" }
spec: { selector: { app: web }, clusterIP: 10.0.0.9, ports: [{ port: 80, targetPort: 8080 }] }
---
apiVersion: v1
kind: Secret
metadata: { name: front-tls, namespace: default }
type: kubernetes.io/tls
data: { tls.crt: c2VjcmV0, tls.key: dmVyeS1zZWNyZXQ= }
`;

function storeOf(): ClusterStore {
  const store = new ClusterStore();
  for (const object of parseManifests([{ name: "front.yaml", text }])) store.upsert(object);
  return store;
}

const now = new Date("2020-01-02T00:00:00Z");
const metadata = { name: "x", namespace: "default", creationTimestamp: "2020-01-01T00:00:00Z" };
const service = (spec: object, status = {}): KubernetesObject =>
  ({ apiVersion: "v1", kind: "Service", metadata, spec, status }) as KubernetesObject;
const containers = [{ name: "main", image: "img:1" }, { name: "side" }];
const deployment = (spec: object, status = {}): KubernetesObject =>
  ({
    ...{ apiVersion: "apps/v1", kind: "Deployment", metadata, status },
    spec: { template: { spec: { containers } }, ...spec },
  }) as KubernetesObject;
const ingress = (spec: object, status = {}): KubernetesObject =>
  ({ apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata, spec, status }) as KubernetesObject;
const rules = (...hosts: (string | undefined)[]) => ({ rules: hosts.map((host) => ({ host })) });
const balanced = (...addresses: object[]) => ({ loadBalancer: { ingress: addresses } });

describe("rows", () => {
  it.each<[KubernetesObject, string[]]>([
    [service({}), ["x", "ClusterIP", "<none>", "<none>", "<none>", "24h", "<none>"]],
    [
      service({
        type: "NodePort",
        clusterIPs: ["10.0.0.1", "fd00::1"],
        externalIPs: ["192.0.2.7"],
        ports: [
          { port: 80, nodePort: 30080 },
          { port: 53, protocol: "UDP" },
        ],
        selector: { tier: "front", app: "web" },
      }),
      ["x", "NodePort", "10.0.0.1", "192.0.2.7", "80:30080/TCP,53/UDP", "24h", "app=web,tier=front"],
    ],
    [
      service({ type: "LoadBalancer", clusterIP: "10.0.0.1" }),
      ["x", "LoadBalancer", "10.0.0.1", "<pending>", "<none>", "24h", "<none>"],
    ],
    [
      service(
        { type: "LoadBalancer", externalIPs: ["192.0.2.7"] },
        balanced({ ip: "192.0.2.9" }, { hostname: "lb" }),
      ),
      ["x", "LoadBalancer", "<none>", "192.0.2.9,lb,192.0.2.7", "<none>", "24h", "<none>"],
    ],
    [
      service({ type: "ExternalName", externalName: "else.example.com" }),
      ["x", "ExternalName", "<none>", "else.example.com", "<none>", "24h", "<none>"],
    ],
    [ingress({}), ["x", "<none>", "*", "", "80", "24h"]],
    [
      ingress(
        { ingressClassName: "sluice", tls: [{}], ...rules("a", "b", "c", "d", "e") },
        balanced({ ip: "192.0.2.1" }),
      ),
      ["x", "sluice", "a,b,c + 2 more...", "192.0.2.1", "80, 443", "24h"],
    ],
    [ingress(rules(undefined, "a")), ["x", "<none>", "a", "", "80", "24h"]],
    [
      {
        apiVersion: "networking.k8s.io/v1",
        kind: "IngressClass",
        metadata,
        spec: {
          controller: "c.example.com/x",
          parameters: { apiGroup: "k.example.com", kind: "P", name: "p" },
        },
      },
      ["x", "c.example.com/x", "P.k.example.com/p", "24h"],
    ],
    [
      deployment({}, { readyReplicas: 1, updatedReplicas: 3, availableReplicas: 2 }),
      ["x", "1/1", "3", "2", "24h", "main,side", "img:1,", "<none>"],
    ],
    [
      deployment({
        replicas: 3,
        selector: {
          matchLabels: { tier: "front", app: "web" },
          matchExpressions: [
            { key: "c", operator: "NotIn", values: ["2", "1"] },
            { key: "b", operator: "DoesNotExist" },
            { key: "a", operator: "Exists" },
          ],
        },
      }),
      ["x", "0/3", "0", "0", "24h", "main,side", "img:1,", "a,app=web,!b,c notin (1,2),tier=front"],
    ],
  ])("%j", (object, cells) => {
    const printer = printerOf(object.kind as "Ingress");
    expect(printer.cells(object, now)).toEqual(cells);
    expect(printer.columns).toHaveLength(cells.length);
  });
});

describe("Secrets", () => {
  it.each([
    "/api/v1/secrets",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/secrets/front-tls",
    "/api/v1/namespaces/default/secrets?watch=true",
  ])("are never given out: %s", (target) => {
    const { pathname, searchParams } = new URL(target, "http://x");
    const answer = answerApiRequest(
      { method: "GET", path: pathname, query: searchParams, accept: "application/json" },
      storeOf(),
      { version: { gitVersion: "v1.36.0", runtime: "", platform: "" }, now: () => now },
    );
    expect(answer?.status).toBe(404);
  });
});

describeReal("kubectl", "Ingresses and Services from manifests, asked by real kubectls", () => {
  for (const kubectl of kubectls()) {
    describe(`kubectl ${kubectl.version}`, () => {
      const store = storeOf();
      const runner = runnerAt(kubectl, store);

      it("are printed with kubectl's columns, and as they are", async () => {
        const { stdout } = await runner().run(["get", "ingress"]);
        expect(stdout).toMatch(
          /^NAME +CLASS +HOSTS +ADDRESS +PORTS +AGE\nfront +sluice +a\.example\.com +80, 443 +\d+y/,
        );
        expect((await runner().run(["get", "svc", "-o", "wide"])).stdout).toMatch(
          /^NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE +SELECTOR\napp +ClusterIP +10\.0\.0\.9 +<none> +80\/TCP +\d+y\S* +app=web\n/,
        );
        expect((await runner().run(["get", "ingressclasses"])).stdout).toMatch(
          /^NAME +CONTROLLER +PARAMETERS +AGE\nsluice +sluice\.dev\/ingress-controller +<none> +/,
        );
        const { stdout: yaml } = await runner().run(["get", "ing", "front", "-o", "yaml"]);
        expect(yaml).toContain("apiVersion: networking.k8s.io/v1\nkind: Ingress\n");
        expect((await runner().run(["get", "ing", "-l", "app=none"])).stderr).toContain("No resources found");
        expect((await runner().run(["get", "ing", "none"])).stderr).toContain(
          'Error from server (NotFound): ingresses.networking.k8s.io "none" not found\n',
        );
        const { exitCode, stdout: secrets } = await runner().run(["get", "secrets", "-A"]);
        expect([exitCode, secrets]).toEqual([1, ""]);
      });

      it("are watched", async () => {
        // A list: kubectl drops the first event of one object's watch, although it may be a new change.
        const watching = runner().start(["get", "ingress", "-w"]);
        const output = collect(watching.stdout);
        await expect.poll(() => output()).toContain("front");
        const found = store.get("Ingress", "default", "front");
        if (found === undefined) throw new Error("not there");
        store.upsert({ ...found, status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } } });
        await expect.poll(() => output()).toContain("192.0.2.1");
        const ended = once(watching, "exit");
        watching.kill();
        await ended;
      });
    });
  }
});
