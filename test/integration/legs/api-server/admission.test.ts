import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { get } from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Duplex } from "node:stream";
import { PassThrough } from "node:stream";
import { Exec, KubeConfig, type V1Status } from "@kubernetes/client-node";
import { expect, it, onTestFinished } from "vitest";
import { WebSocketServer } from "ws";
import { forbidden } from "../../../../packages/client/src/api/status.ts";
import { statusBody } from "../../../../packages/client/src/api/status-body.ts";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import { runFakeNode } from "../../../../packages/lab/src/fake-node/run-fake-node.ts";
import type { Caller } from "../../../support/api-server/callers.ts";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { eventually } from "../../../support/eventually.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

const OWN_TOKEN = "the-gateways-own";
const ADMISSION = "admissionregistration.k8s.io/v1";
const REFUSAL = "ValidatingAdmissionPolicy 'no-exec' denied request: not here";

const judging = [
  {
    apiVersion: ADMISSION,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name: "no-exec" },
    spec: {
      matchConstraints: {
        resourceRules: [
          { operations: ["CONNECT"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/exec"] },
        ],
      },
    },
  },
  {
    apiVersion: ADMISSION,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name: "no-exec" },
    spec: { policyName: "no-exec", validationActions: ["Deny"] },
  },
];

/** A live API whose exec prints "from the API server", or is refused by admission; a gateway in front of it, and of a node that runs commands. */
async function start(cluster: object, more: object = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-admission-"));
  const upgrades: IncomingMessage[] = [];
  const state = { denies: false };
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: () => "v5.channel.k8s.io" });
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    upgrades.push(request);
    if (state.denies) {
      const body = statusBody(forbidden("pods", "web", REFUSAL).status);
      const length = Buffer.byteLength(body);
      socket.end(
        `HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`,
      );
      return;
    }
    webSockets.handleUpgrade(request, socket, head, (client) => {
      client.send(Buffer.from("\x01from the API server"));
      client.send(Buffer.from(`\x03${JSON.stringify({ metadata: {}, status: "Success" })}`));
      client.close(1000);
    });
  };
  const nodeTls = await createSelfSignedCertificate();
  const containers = [{ name: "main", command: ["/bin/sh", "-c", "exec cat"] }];
  const node = await runFakeNode({
    name: "node",
    declaresWebSockets: true,
    tls: nodeTls,
    pods: [{ namespace: "default", name: "web", uid: "web", containers }],
  });
  const tls = await issueCertificate({ commonName: "api" }, undefined, { addresses: ["127.0.0.1"] });
  const tokens: Record<string, Caller> = { [OWN_TOKEN]: { username: "sluice", groups: [] } };
  const server = await TestApiServer.start({ tokens, tls, onUpgrade });
  server.apply({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: { nodeName: "node", containers: [{ name: "main", image: "i" }] },
    status: { phase: "Running" },
  });
  server.apply({
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "node" },
    status: {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: node.port } },
    },
  });
  const kubeconfig = await server.writeKubeconfig(path.join(folder, "kubeconfig"), OWN_TOKEN);
  const gateway = await startTestGateway({
    kubeletAuthority: nodeTls.certPem,
    configuration: { cluster: { kubeconfig, ...cluster }, ...more },
  });
  tokens[gateway.token] = { username: "tester", groups: [] };
  onTestFinished(async () => {
    await gateway.stop();
    await server.stop();
    await node.close();
    rmSync(folder, { recursive: true });
  });
  const readiness = async () => (await fetch(new URL("/readyz?verbose", gateway.adminUrl))).text();
  await eventually("the gateway is ready", async () => (await readiness()).startsWith("[+]cluster ok"));
  const config = new KubeConfig();
  config.loadFromFile(gateway.kubeconfig);
  const exec = (command = ["echo", "from the node"]) =>
    new Promise<string>((resolve, reject) => {
      const stdout = new PassThrough();
      const done = (status: V1Status) => resolve(`${status.status} ${String(stdout.read()).trim()}`);
      new Exec(config)
        .exec("default", "web", "main", command, stdout, null, null, false, done)
        .catch(({ message }: Error) => (message ? resolve(message) : reject(new Error("no message"))));
    });
  const prints = (text: string) => eventually(text, async () => (await exec()) === `Success ${text}`);
  return { server, gateway, upgrades, state, exec, prints };
}

it.each([
  "caller",
  "impersonate",
])("has the API server carry what its policies judge, as %s, and nothing else", async (forwardAs) => {
  const { server, gateway, upgrades, state, exec, prints } = await start({ forwardAs });
  await prints("from the node");
  for (const object of judging) server.apply(object);
  await prints("from the API server");
  const { method, url, headers } = upgrades[0] as IncomingMessage;
  expect([method, url]).toEqual([
    "GET",
    "/api/v1/namespaces/default/pods/web/exec?container=main&command=echo&command=from+the+node&stdout=true",
  ]);
  const named = [headers.authorization, headers["impersonate-user"]];
  expect(named).toEqual(
    forwardAs === "caller" ? [`Bearer ${gateway.token}`, undefined] : [`Bearer ${OWN_TOKEN}`, "tester"],
  );
  state.denies = true;
  expect(await exec()).toContain("403");
  expect(gateway.logLines.some((line) => line.includes('"reason":"admission-judges-it"'))).toBe(true);
  server.remove("ValidatingAdmissionPolicy", "", "no-exec");
  await prints("from the node");
});

it("has the API server carry every session where it is told so", async () => {
  const { exec, upgrades } = await start({ admission: "always" });
  expect(await exec()).toBe("Success from the API server");
  expect(upgrades).toHaveLength(1);
});

it("asks no admission where it is told so", async () => {
  const { server, exec, upgrades } = await start({ admission: "none" });
  for (const object of judging) server.apply(object);
  expect(await exec()).toBe("Success from the node");
  expect(upgrades).toHaveLength(0);
  expect(server.requests.some(({ path: asked }) => asked.includes("admissionregistration"))).toBe(false);
});

it("answers 503 while the API server that has to judge is away", async () => {
  const { server, exec, prints } = await start({});
  for (const object of judging) server.apply(object);
  await prints("from the API server");
  await server.stop();
  expect(await exec()).toContain("503");
});

it.each([
  ["AlwaysAllow"],
  ["RBAC"],
])("refuses sessions by state that is too old, in mode %s", async (mode) => {
  const { server, exec, gateway, prints } = await start(
    { maxStateAge: "3s" },
    { authorization: { mode: [mode] } },
  );
  server.apply({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "all" },
    rules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
  });
  server.apply({
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "all" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "all" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "system:authenticated" }],
  });
  await prints("from the node");
  await server.stop();
  // Not at once: what is known serves for its time.
  expect(await exec()).toBe("Success from the node");
  await eventually("it is refused", async () => (await exec()).includes("503"));
  const url = `${gateway.apiServerUrl}/api/v1/namespaces/default/pods/web/exec?command=true`;
  const { body } = await getAs(gateway, url);
  expect(body).toMatch(
    /the API server was last heard at 20\S+Z, longer ago than the 3s of cluster\.maxStateAge/,
  );
  await server.listen();
  await prints("from the node");
});

it("answers a read of a pod from what is known while the API server is away, and marks it", async () => {
  const { server, gateway, exec, prints } = await start({ forwardAs: "impersonate", maxStateAge: "4s" });
  await prints("from the node");
  const url = `${gateway.apiServerUrl}/api/v1/namespaces/default/pods/web`;
  expect((await getAs(gateway, url)).headers.warning).toBeUndefined();
  await server.stop();
  const known = await getAs(gateway, url);
  expect([known.status, JSON.parse(known.body).spec.containers[0].name]).toEqual([200, "main"]);
  expect(known.headers.warning).toMatch(
    /^299 - "the API server is away: this is what Sluice knew of the pod at 20\S+Z, without/,
  );
  expect(await exec()).toBe("Success from the node");
  // What is not known may exist, and other requests are not answered.
  for (const path of ["web2", "web/log", ""]) {
    const { status, headers } = await getAs(gateway, url.replace(/web$/, path));
    expect([path, status, headers.warning]).toEqual([path, 503, undefined]);
  }
  await eventually("it is too old", async () => (await getAs(gateway, url)).status === 503);
  expect((await getAs(gateway, url)).body).toContain("longer ago than the 4s of cluster.maxStateAge");
});

it("answers no read of a pod to a user who may not read it", async () => {
  const { server, gateway } = await start({}, { authorization: { mode: ["RBAC"] } });
  await server.stop();
  const { status, body } = await getAs(gateway, `${gateway.apiServerUrl}/api/v1/namespaces/default/pods/web`);
  expect(status).toBe(503);
  expect(body).toContain("error trying to reach the API server");
});

/** Over TLS whose certificate is not checked. */
async function getAs(
  gateway: TestGateway,
  url: string,
): Promise<{ headers: IncomingHttpHeaders; body: string; status: number }> {
  const headers = { Authorization: `Bearer ${gateway.token}` };
  const sent = get(url, { rejectUnauthorized: false, headers, agent: false });
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response) body += chunk;
  return { headers: response.headers, body, status: response.statusCode ?? 0 };
}
