import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type BuiltAuthorizer, buildAuthorizer } from "../../../../../src/access/authz/component.ts";
import { ClusterStore } from "../../../../../src/cluster/cluster-store.ts";
import { parseConfiguration } from "../../../../../src/config/configuration.ts";
import { createLogger } from "../../../../../src/observability/logger.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../../support/gateway-harness.ts";
import { testUpstreams } from "../../../../support/test-upstreams.ts";

const SECRET = "webhook-s3cret-token";
let folder: string;
let webhook: Server;
let built: BuiltAuthorizer;
let harness: GatewayHarness | undefined;
let answer: (user: string) => { status: number; body: string } | undefined;
const asked: { url: string | undefined; authorization: string | undefined; user: string }[] = [];
const logLines: string[] = [];

beforeEach(async () => {
  asked.length = logLines.length = 0;
  folder = await mkdtemp(path.join(tmpdir(), "sluice-webhook-"));
  writeFileSync(path.join(folder, "token"), `${SECRET}\n`);
  webhook = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { spec } = JSON.parse(Buffer.concat(chunks).toString());
    asked.push({ url: request.url, authorization: request.headers.authorization, user: spec.user });
    const found = answer(spec.user);
    // No answer at all: the question hangs until it is given up.
    if (found !== undefined) response.writeHead(found.status).end(found.body);
  });
  await new Promise<void>((resolve) => webhook.listen(0, "127.0.0.1", resolve));
  const { port } = webhook.address() as AddressInfo;
  const configuration = parseConfiguration(
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      authorization: {
        mode: ["Webhook"],
        webhook: { url: `http://127.0.0.1:${port}`, tokenFile: "token", timeout: "200ms" },
      },
    }),
    path.join(folder, "f.json"),
  );
  const logger = createLogger({ level: "debug", destination: { write: (line) => void logLines.push(line) } });
  built = await buildAuthorizer(configuration.authorization, new ClusterStore(), logger, testUpstreams());
});
afterEach(async () => {
  await harness?.close();
  await built.stop();
  webhook.closeAllConnections();
  await new Promise((resolve) => webhook.close(resolve));
  await rm(folder, { recursive: true });
  harness = undefined;
});

const reviewed = (allowed: boolean, more: object = {}) => ({
  status: 201,
  body: JSON.stringify({ status: { allowed, ...more } }),
});

/** Code and message of a plain POST to exec: 400 "Upgrade request required" once it is authorised. */
async function post(): Promise<[number, string]> {
  harness ??= await startGatewayHarness({ kubeletPort: 1, authorizer: built.authorizer });
  const url = `http://${harness.authority}/api/v1/namespaces/default/pods/web/exec?command=ls&stdout=true`;
  const response = await fetch(url, { method: "POST" });
  return [response.status, ((await response.json()) as { message: string }).message];
}

describe("authorization by webhook, through the gateway", () => {
  it("allowed goes on; the second request is answered from memory", async () => {
    answer = () => reviewed(true);
    expect(await post()).toEqual([400, "Upgrade request required"]);
    expect(await post()).toEqual([400, "Upgrade request required"]);
    expect(asked).toEqual([
      {
        url: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        authorization: `Bearer ${SECRET}`,
        user: "tester",
      },
    ]);
  });

  it("not allowed is a 403 with the webhook's reason", async () => {
    answer = () => reviewed(false, { reason: "not on Fridays" });
    expect(await post()).toEqual([
      403,
      'pods "web" is forbidden: User "tester" cannot create resource "pods/exec" in API group "" in the namespace "default": not on Fridays',
    ]);
  });

  it.each([
    ["silent", () => undefined],
    ["broken", () => ({ status: 500, body: "secret internals" })],
    ["talking nonsense", () => ({ status: 200, body: "<html>" })],
  ])("a webhook that is %s lets nobody in, and neither user nor log learn a secret", async (_, answers) => {
    answer = answers;
    const [code, message] = await post();
    expect(code).toBe(403);
    expect(message).toMatch(/: the authorization webhook gave no answer$/);
    expect(logLines.join("")).toContain("the authorization webhook failed");
    expect(logLines.join("") + message).not.toMatch(/s3cret|internals/);
    answer = () => reviewed(true);
    expect((await post())[0]).toBe(400);
  });

  it("an account that may not ask is named once, and again when it may", async () => {
    answer = () => ({ status: 403, body: "{}" });
    for (let tries = 0; tries < 3; tries += 1) expect((await post())[0]).toBe(403);
    answer = () => reviewed(true);
    expect((await post())[0]).toBe(400);
    expect(logLines.map((line) => JSON.parse(line)).map(({ level, msg }) => [level, msg])).toEqual([
      ["warn", "the gateway's account lacks permissions: see `sluice rbac`"],
      ["info", "the gateway's account has the permission again"],
    ]);
    expect(JSON.parse(logLines[0] ?? "").missing).toEqual([
      "create subjectaccessreviews.authorization.k8s.io (authorization.mode: Webhook)",
    ]);
  });

  it("a webhook that is down lets nobody in", async () => {
    webhook.closeAllConnections();
    await new Promise((resolve) => webhook.close(resolve));
    expect((await post())[0]).toBe(403);
    expect(logLines.join("")).toContain("connection refused");
  });

  it("a storm of requests is one review", async () => {
    answer = () => reviewed(true);
    await startedHarness();
    const answers = await Promise.all(Array.from({ length: 50 }, post));
    expect(new Set(answers.map(([code]) => code))).toEqual(new Set([400]));
    expect(asked).toHaveLength(1);
  });
});

async function startedHarness(): Promise<void> {
  harness = await startGatewayHarness({ kubeletPort: 1, authorizer: built.authorizer });
}
