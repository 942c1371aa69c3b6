import { Agent, request } from "node:https";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clusterRole, clusterRoleBinding, resourceRule } from "../../../../support/rbac-objects.ts";
import { startTestGateway, type TestGateway } from "../../../../support/test-gateway.ts";

const REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const spec = { resourceAttributes: { verb: "get", resource: "pods", namespace: "default" } };
let gateway: TestGateway;
// The gateway's certificate is of this run.
const agent = new Agent({ rejectUnauthorized: false, keepAlive: false });

beforeAll(async () => {
  gateway = await startTestGateway({
    users: ["token-viktor,viktor,u1"],
    manifests: [
      clusterRole("viewer", resourceRule("get||pods")),
      clusterRoleBinding("viewers", "ClusterRole/viewer", "User:viktor"),
    ],
    configuration: { authorization: { mode: ["RBAC"] } },
  });
});
afterAll(async () => {
  agent.destroy();
  await gateway?.stop();
});

interface Asked {
  method?: string;
  path?: string;
  token?: string;
  type?: string;
  body?: string | Buffer;
}

function ask({ method = "POST", path = REVIEW, token = "token-viktor", type, body }: Asked) {
  const headers = {
    ...(token !== "" && { Authorization: `Bearer ${token}` }),
    ...(type !== undefined && { "Content-Type": type }),
  };
  return new Promise<{ code: number; json: Record<string, unknown> }>((resolve, reject) => {
    const url = new URL(path, gateway.apiServerUrl);
    const sent = request(url, { method, headers, agent }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const text = Buffer.concat(chunks).toString();
      resolve({ code: response.statusCode ?? 0, json: text.startsWith("{") ? JSON.parse(text) : { text } });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

describe("reviews over HTTP", () => {
  it("are 201 with a status", async () => {
    const { code, json } = await ask({ body: JSON.stringify({ spec }) });
    expect([code, json.status]).toEqual([
      201,
      {
        allowed: true,
        reason: 'RBAC: allowed by ClusterRoleBinding "viewers" of ClusterRole "viewer" to User "viktor"',
      },
    ]);
  });

  it.each<[string, Asked, number]>([
    ["an oversized review", { body: JSON.stringify({ spec, padding: "x".repeat(70_000) }) }, 413],
    ["no JSON", { body: "{" }, 400],
    ["nothing", { body: "" }, 400],
    ["no protobuf", { body: "k8s", type: "application/vnd.kubernetes.protobuf" }, 400],
    ["YAML", { body: "a: b", type: "application/yaml" }, 415],
    ["an unknown token", { body: "{}", token: "nope" }, 401],
    ["GET", { method: "GET" }, 403],
    [
      "another user's question",
      { path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", body: "{}" },
      403,
    ],
    ["a path below", { path: `${REVIEW}/x`, body: "{}" }, 404],
  ])("%s is refused with a Status", async (_, asked, code) => {
    const answer = await ask(asked);
    expect([answer.code, answer.json.kind]).toEqual([code, "Status"]);
  });

  it("health and version need no token, discovery needs one", async () => {
    const codeOf = async (path: string, token: string) => (await ask({ method: "GET", path, token })).code;
    for (const path of ["/healthz", "/livez", "/readyz", "/version"])
      expect(await codeOf(path, "")).toBe(200);
    expect(await codeOf("/apis", "")).toBe(401);
    for (const path of ["/api", "/apis", "/apis/authorization.k8s.io/v1"]) {
      expect(await codeOf(path, "token-viktor")).toBe(200);
    }
    expect(await codeOf("/metrics", "token-viktor")).toBe(403);
  });
});
