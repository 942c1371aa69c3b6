import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { loadKubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { ApiClient } from "../../../src/kubernetes/api-client.ts";
import { buildCluster } from "../../../src/kubernetes/component.ts";
import { PermissionCheck } from "../../../src/kubernetes/permission-check.ts";
import type { RequiredRule } from "../../../src/kubernetes/required-rules.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { eventually } from "../../support/eventually.ts";

const rule = (apiGroup: string, resource: string, verbs: string[], isChecked = true): RequiredRule => ({
  apiGroup,
  resources: [resource],
  verbs,
  neededBy: `the field of ${resource}`,
  isChecked,
});

it("names an API server that is too old for the verbs of a rule", async () => {
  const answers: Record<string, object> = {
    "/version": { gitVersion: "v1.35.2" },
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": { status: { allowed: true } },
  };
  const check = new PermissionCheck({
    client: { json: async ({ path: asked }) => answers[asked] },
    rules: [{ ...rule("", "pods", ["impersonate-on:user-info:get"]), sinceMinor: 36 }],
    logger: { info: () => {}, warn: () => {} },
  });
  onTestFinished(() => check.stop());
  await eventually("it is known", () => check.missing.length > 0);
  expect(check.missing).toEqual([
    "an API server of Kubernetes 1.36 (cluster.impersonation: constrained): it is v1.35.2",
  ]);
});

it("asks for a permission in the one namespace where it is needed", async () => {
  const asked: unknown[] = [];
  const check = new PermissionCheck({
    client: {
      json: async ({ body }) => {
        asked.push(
          (body as { json: { spec: { resourceAttributes: unknown } } }).json.spec.resourceAttributes,
        );
        return { status: { allowed: false } };
      },
    },
    rules: [{ ...rule("discovery.k8s.io", "endpointslices", ["list"]), namespace: "sluice" }],
    logger: { info: () => {}, warn: () => {} },
  });
  onTestFinished(() => check.stop());
  await eventually("it is known", () => check.missing.length > 0);
  expect(asked).toEqual([
    {
      verb: "list",
      group: "discovery.k8s.io",
      resource: "endpointslices",
      subresource: "",
      namespace: "sluice",
    },
  ]);
});

type ApiOptions = NonNullable<Parameters<typeof TestApiServer.start>[0]>;
type Asked = Parameters<NonNullable<ApiOptions["allows"]>>[0];

/** A check against an API server that allows what `api` says; `lines` are its log's. */
async function startCheck(rules: readonly RequiredRule[], api: ApiOptions, token: string) {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-permissions-"));
  const server = await TestApiServer.start(api);
  const kubeconfig = await loadKubeconfig(await server.writeKubeconfig(path.join(folder, "config"), token));
  const client: ApiClient = new ApiClient({
    kubeconfig,
    dialTimeoutMs: 5_000,
    onForbidden: () => check.doubt(),
  });
  const lines: string[] = [];
  const log = (fields: object, message: string): void =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const check = new PermissionCheck({ client, rules, logger: { info: log, warn: log }, checkAgainMs: 10 });
  onTestFinished(async () => {
    check.stop();
    client.close();
    await server.stop();
    rmSync(folder, { recursive: true });
  });
  return { server, client, check, lines };
}

it("names what is missing, once, and asks again until nothing is", async () => {
  const granted = new Set(["get pods/", "impersonate users/"]);
  const rules = [
    rule("", "pods", ["get", "list"]),
    rule("", "users", ["impersonate"]),
    rule("authentication.k8s.io", "userextras/a.example/key", ["impersonate"]),
    rule("", "secrets", ["list"], false),
  ];
  const allows = ({ verb, resource, subresource }: Asked) =>
    granted.has(`${verb} ${resource}/${subresource}`);
  const { server, check, lines } = await startCheck(rules, { allows }, "");
  const missing = [
    "list pods (the field of pods)",
    "impersonate userextras/a.example/key.authentication.k8s.io (the field of userextras/a.example/key)",
  ];
  await eventually("it is known", () => check.missing.length > 0);
  expect(check.missing).toEqual(missing);
  const asked = (): number => server.requests.length;
  const before = asked();
  await eventually("it is asked again", () => asked() > before + 8);
  expect(lines).toEqual([
    `the gateway's account lacks permissions: see \`sluice rbac\` ${JSON.stringify({ missing })}`,
  ]);
  granted.add("list pods/").add("impersonate userextras/a.example/key");
  await eventually("nothing is missing", () => check.missing.length === 0);
  expect(lines.at(-1)).toBe("the gateway's account has all permissions that it needs {}");
});

it("asks again when the API server refuses what it had allowed", async () => {
  let mayList = true;
  const api = {
    tokens: { t: { username: "sluice", groups: [] } },
    enforces: true,
    allows: ({ verb }: Asked) => verb !== "list" || mayList,
  };
  const rules = [rule("", "pods", ["list", "watch"])];
  const { server, client, check, lines } = await startCheck(rules, api, "t");
  const list = () => client.json({ path: "/api/v1/pods" });
  const reviews = () => server.requests.filter(({ path: asked }) => asked.includes("selfsubject")).length;
  await eventually("all is allowed", () => reviews() === 2);
  await list();
  mayList = false;
  await expect(list()).rejects.toThrow();
  await eventually("it is known", () => check.missing.length > 0);
  expect(check.missing).toEqual(["list pods (the field of pods)"]);
  await expect(list()).rejects.toThrow();
  const before = reviews();
  await eventually("it is asked again", () => reviews() > before + 4);
  mayList = true;
  await eventually("nothing is missing", () => check.missing.length === 0);
  const after = reviews();
  await list();
  expect(lines).toEqual([
    'the gateway\'s account lacks permissions: see `sluice rbac` {"missing":["list pods (the field of pods)"]}',
    "the gateway's account has all permissions that it needs {}",
  ]);
  expect(reviews()).toBe(after);
});

it("asks again when a pod may not be read any more, in a gateway's cluster", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-permissions-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  let mayGet = true;
  const server = await TestApiServer.start({
    tokens: { t: { username: "sluice", groups: [] } },
    enforces: true,
    allows: ({ verb }) => verb !== "get" || mayGet,
  });
  onTestFinished(() => server.stop());
  await server.writeKubeconfig(path.join(folder, "config"), "t");
  const lines: { readonly msg: string; readonly missing?: readonly string[] }[] = [];
  const cluster = await buildCluster(
    parseConfiguration(
      JSON.stringify({
        apiVersion: "sluice.dev/v1alpha1",
        kind: "GatewayConfiguration",
        cluster: { kubeconfig: "config", admission: "none", forwardAs: "caller" },
      }),
      path.join(folder, "gateway.json"),
    ),
    new Metrics({ withProcessMetrics: false }),
    createLogger({ level: "info", destination: { write: (line) => void lines.push(JSON.parse(line)) } }),
  );
  onTestFinished(() => cluster.stop());
  const reviews = () => server.requests.filter(({ path: asked }) => asked.includes("selfsubject")).length;
  await eventually("four kinds are reviewed", () => reviews() === 11);
  mayGet = false;
  await expect(cluster.lookUp?.("default", "web")).rejects.toThrow("the API server cannot be asked");
  const warning = () => lines.find(({ msg }) => msg.includes("lacks permissions"));
  await eventually("it is logged", () => warning() !== undefined);
  expect(warning()?.missing).toEqual(
    ["pods", "nodes", "namespaces"].map((kind) => `get ${kind} (listeners.apiServer)`),
  );
});
