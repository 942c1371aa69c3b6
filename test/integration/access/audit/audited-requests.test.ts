import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { AuditEvent } from "../../../../src/access/audit/audit-event.ts";
import { AuditLog, METADATA_OF_EVERYTHING } from "../../../../src/access/audit/audit-log.ts";
import { AuditTrail } from "../../../../src/access/audit/audit-trail.ts";
import type { EventQueue } from "../../../../src/access/audit/event-queue.ts";
import type { UserInfo } from "../../../../src/access/user-info.ts";
import type { AuditPolicyDocument } from "../../../../src/config/audit-policy.ts";
import { AccessGateway, EXEC_PATH } from "../../../support/access-gateway.ts";
import { connectHttp2, openWebSocket } from "../../../support/http2-client.ts";
import { asked, user } from "../../../support/rbac-objects.ts";

const soon = (check: () => unknown) => vi.waitFor(check, { timeout: 30_000, interval: 20 });
const TOKEN = "audit-secret-token";
const ANN = { headers: { Authorization: `Bearer ${TOKEN}`, Cookie: "session=audit-secret-cookie" } };

interface Event {
  readonly level: string;
  readonly stage: string;
  readonly auditID: string;
  readonly requestURI: string;
  readonly verb: string;
  readonly user: { readonly username?: string };
  readonly responseStatus?: { readonly code: number; readonly message?: string };
  readonly annotations?: Record<string, string>;
}

describe("the audit log", () => {
  let gateway: AccessGateway;
  afterEach(() => gateway.stop());

  const start = async (audit: object, more: object = {}, files: Record<string, string> = {}) => {
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), `${TOKEN},ann,1,"dev"\n`);
      for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
      return { authentication: { tokenAuthFile: "tokens.csv" }, audit, ...more };
    });
  };

  const logged = (): Event[] => {
    const file = path.join(gateway.folder, "audit.log");
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, "utf8").split("\n");
    return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Event);
  };

  const eventsOf = async (count: number) => {
    await soon(() => expect(logged().length).toBeGreaterThanOrEqual(count));
    return logged();
  };

  it("tells a session from its request to its end, with bytes, plan and cause", async () => {
    await start({ log: { path: "audit.log" } });
    expect((await gateway.exec(ANN)).status).toBe(101);
    const events = await eventsOf(3);
    expect(events.map(({ stage }) => stage)).toEqual([
      "RequestReceived",
      "ResponseStarted",
      "ResponseComplete",
    ]);
    expect(new Set(events.map(({ auditID }) => auditID)).size).toBe(1);
    expect(events[0]).toMatchObject({
      kind: "Event",
      apiVersion: "audit.k8s.io/v1",
      level: "Metadata",
      requestURI: EXEC_PATH,
      verb: "get",
      user: { username: "ann", uid: "1", groups: ["dev", "system:authenticated"] },
      sourceIPs: ["127.0.0.1"],
      objectRef: {
        resource: "pods",
        subresource: "exec",
        namespace: "default",
        name: "web",
        apiVersion: "v1",
      },
    });
    expect(events[2]?.responseStatus).toEqual({ metadata: {}, code: 101 });
    expect(events[2]?.annotations).toMatchObject({
      "authorization.k8s.io/decision": "allow",
      "sluice.dev/plan": "translate",
      "sluice.dev/node": "node",
      "sluice.dev/ended-by": "node",
      "sluice.dev/end-cause": "completed",
      "sluice.dev/upstream-bytes": "0",
    });
    expect(Number(events[2]?.annotations?.["sluice.dev/downstream-bytes"])).toBeGreaterThanOrEqual(0);
  });

  it("tells the code that an HTTP/2 client was answered with", async () => {
    await start({ log: { path: "audit.log" } });
    const session = await connectHttp2(`https://${gateway.authority}`);
    try {
      const headers = { authorization: `Bearer ${TOKEN}`, "sec-websocket-protocol": "v5.channel.k8s.io" };
      await openWebSocket(session, EXEC_PATH, headers);
      const events = await eventsOf(3);
      expect(events.map(({ stage, responseStatus }) => [stage, responseStatus?.code])).toEqual([
        ["RequestReceived", undefined],
        ["ResponseStarted", 200],
        ["ResponseComplete", 200],
      ]);
    } finally {
      session.destroy();
    }
  });

  it("tells refusals with what was answered", async () => {
    await start({ log: { path: "audit.log" } }, { authorization: { mode: ["AlwaysDeny"] } });
    expect((await gateway.exec(ANN)).status).toBe(403);
    expect((await gateway.exec({ headers: { Authorization: "Bearer wrong-secret" } })).status).toBe(401);
    const complete = (await eventsOf(5)).filter(({ stage }) => stage === "ResponseComplete");
    expect(complete.map(({ user, responseStatus }) => [user.username, responseStatus?.code])).toEqual([
      ["ann", 403],
      [undefined, 401],
    ]);
    expect(complete[0]?.annotations?.["authorization.k8s.io/decision"]).toBe("forbid");
    expect(complete[0]?.responseStatus?.message).toContain('User "ann" cannot get resource "pods/exec"');
  });

  it("tells plain requests, and who was impersonated", async () => {
    await start({ log: { path: "audit.log" } });
    const headers = { ...ANN.headers, "Impersonate-User": "bob" };
    expect((await gateway.get("/api/v1/namespaces/default/pods", { headers })).status).toBe(200);
    const events = await eventsOf(2);
    expect(events.map(({ stage }) => stage)).toEqual(["RequestReceived", "ResponseComplete"]);
    expect(events[1]).toMatchObject({
      verb: "list",
      user: { username: "ann" },
      impersonatedUser: { username: "bob", groups: ["system:authenticated"] },
      responseStatus: { code: 200 },
    });
  });

  it("cuts what a client may write without end, known or not", async () => {
    await start({ log: { path: "audit.log" } });
    const long = "x".repeat(12_000);
    const unknown = { headers: { Authorization: "Bearer wrong-secret", "User-Agent": long } };
    expect((await gateway.get(`/api/v1/namespaces/${long}/pods/${long}?a=${long}`, unknown)).status).toBe(
      401,
    );
    expect((await gateway.get(`/api/v1/namespaces/default/pods/${long}`, ANN)).status).toBe(404);
    await eventsOf(3);
    const lines = readFileSync(path.join(gateway.folder, "audit.log"), "utf8").trimEnd().split("\n");
    for (const line of lines) expect(line.length).toBeLessThan(16 * 1024);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      userAgent: `${long.slice(0, 1024)}...TRUNCATED`,
      requestURI: expect.stringMatching(/^\/api\/v1\/namespaces\/x{8173}\.\.\.TRUNCATED$/) as string,
      objectRef: { name: `${long.slice(0, 1024)}...TRUNCATED` },
    });
  });

  it("records by policy: levels, rules and stages", async () => {
    const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - { level: None, nonResourceURLs: ["/api*"] }
  - { level: Request, resources: [{ resources: ["pods/exec"] }], omitStages: [ResponseStarted] }
`;
    await start({ policyFile: "policy.yaml", log: { path: "audit.log" } }, {}, { "policy.yaml": policy });
    await gateway.get("/api", ANN);
    await gateway.exec(ANN);
    expect(await eventsOf(1)).toMatchObject([
      {
        level: "Request",
        stage: "ResponseComplete",
        requestObject: {
          kind: "PodExecOptions",
          command: ["id"],
          container: "main",
          stdout: true,
          stdin: false,
        },
      },
    ]);
  });

  it("records answers at the level RequestResponse: objects, reviews, refusals; a session has none", async () => {
    const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: RequestResponse }]\n";
    await start({ policyFile: "policy.yaml", log: { path: "audit.log" } }, {}, { "policy.yaml": policy });
    await gateway.get("/api/v1/namespaces/default/pods/web", ANN);
    await gateway.get("/api/v1/namespaces/default/pods/gone", ANN);
    await gateway.exec(ANN);
    const complete = (await eventsOf(7)).filter(({ stage }) => stage === "ResponseComplete");
    expect(complete).toMatchObject([
      { level: "RequestResponse", responseObject: { kind: "Pod", metadata: { name: "web" } } },
      { responseObject: { kind: "Status", code: 404 }, responseStatus: { code: 404 } },
      { requestObject: { kind: "PodExecOptions" }, responseStatus: { code: 101 } },
    ]);
    expect(complete[2]).not.toHaveProperty("responseObject");
  });

  it("leaves out a longer answer and whatever secrets hold, and says so", () => {
    const attributesOf = (resource: string) => (who: UserInfo) => asked({ user: who, verb: "get", resource });
    const annotationOf = (resource: string, answer: Uint8Array) => {
      const queue = { push: (line: string) => events.push(JSON.parse(line)) > 0 } as unknown as EventQueue;
      const events: AuditEvent[] = [];
      const policy = {
        rules: [{ ...METADATA_OF_EVERYTHING.rules[0], level: "RequestResponse" }],
        omitStages: [],
      };
      const log = new AuditLog({
        policy: policy as AuditPolicyDocument,
        backends: [{ queue, isBlocking: false }],
        onFailure: "continue",
      });
      const request = { requestUri: "/", sourceAddresses: [], userAgent: "", isLongRunning: false };
      const trail = new AuditTrail(log, request, attributesOf(resource));
      return trail.received(user("u")).then(() => {
        trail.responding(answer);
        trail.complete({ code: 200 });
        expect(events[1]).not.toHaveProperty("responseObject");
        return events[1]?.annotations;
      });
    };
    const key = "sluice.dev/response-object-left-out";
    return Promise.all([
      expect(annotationOf("pods", Buffer.alloc(65_537))).resolves.toEqual({
        [key]: "65537 bytes, at most 65536 are recorded",
      }),
      expect(annotationOf("secrets", Buffer.from("{}"))).resolves.toEqual({
        [key]: "contents of secrets are never recorded",
      }),
    ]);
  });

  it.each(["refuse", "continue"])("goes on after an object that cannot be written, %s", async (onFailure) => {
    const policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{ level: Request }]\n";
    const files = { "policy.yaml": policy };
    await start({ policyFile: "policy.yaml", log: { path: "audit.log" }, onFailure }, {}, files);
    const nested = `${"[".repeat(8_000)}${"]".repeat(8_000)}`;
    const review = async (member: string, value: string) => {
      const headers = { ...ANN.headers, "Content-Type": "application/json" };
      const spec = '{"nonResourceAttributes":{"verb":"get","path":"/"}}';
      const body = `{"spec":${spec},"${member}":${value}}`;
      const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
      return (await gateway.get(path, { headers, body }, "POST")).status;
    };
    expect(await review("x", nested)).toBe(400);
    expect(await review("spec", nested)).toBe(400);
    expect(await review("x", "[]")).toBe(201);
    const complete = (await eventsOf(6)).filter(({ stage }) => stage === "ResponseComplete");
    expect(complete.map(({ responseStatus }) => responseStatus?.code)).toEqual([400, 400, 201]);
    expect(complete[2]).toMatchObject({ requestObject: { x: [] } });
  });

  it("holds no token, cookie or header of it", async () => {
    await start({ log: { path: "audit.log" } });
    const encoded = Buffer.from(TOKEN).toString("base64url");
    await gateway.exec(ANN, ["v5.channel.k8s.io"], `${EXEC_PATH}&access_token=audit-secret-query`);
    await gateway.exec({}, ["v5.channel.k8s.io", `base64url.bearer.authorization.k8s.io.${encoded}`]);
    await eventsOf(6);
    const text = readFileSync(path.join(gateway.folder, "audit.log"), "utf8") + gateway.logLines.join("");
    for (const secret of [TOKEN, encoded, "audit-secret-cookie", "audit-secret-query"]) {
      expect(text).not.toContain(secret);
    }
    expect(text).toContain("access_token=[redacted]");
  });

  it("on a full disk, refuse: nobody gets in until there is room", async () => {
    await start({ log: { path: "audit.log" }, onFailure: "refuse" });
    const file = path.join(gateway.folder, "audit.log");
    symlinkSync("/dev/full", file);
    const refused = await gateway.exec(ANN);
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.body)).toMatchObject({ kind: "Status", reason: "ServiceUnavailable" });
    expect(gateway.kubelet.sessions).toHaveLength(0);
    expect(await gateway.isReady("audit")).toBe(false);
    rmSync(file);
    // Without a request: a balancer sends none to a replica that is not ready.
    await soon(async () => expect(await gateway.isReady("audit")).toBe(true));
    expect((await gateway.exec(ANN)).status).toBe(101);
    expect((await eventsOf(5)).filter(({ stage }) => stage === "RequestReceived")).toHaveLength(2);
  });

  it("on a full disk, continue: sessions go on and the trouble is counted", async () => {
    await start({ log: { path: "/dev/full" }, onFailure: "continue" });
    expect((await gateway.exec(ANN)).status).toBe(101);
    await soon(async () =>
      expect(await gateway.metric('sluice_audit_failures_total{backend="log"}')).toHaveLength(1),
    );
  });
});

describe("the audit webhook", () => {
  let gateway: AccessGateway;
  let server: Server;
  let status = 200;
  const received: Event[] = [];

  const start = async (onFailure: string, queue: object = {}) => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const list = JSON.parse(Buffer.concat(chunks).toString()) as { kind: string; items: Event[] };
        if (status === 200 && list.kind === "EventList") received.push(...list.items);
        response.statusCode = status;
        response.end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), `${TOKEN},ann,1\n`);
      const webhook = { url, maxWait: "5ms", ...queue };
      return { authentication: { tokenAuthFile: "tokens.csv" }, audit: { webhook, onFailure } };
    });
  };

  afterEach(async () => {
    status = 200;
    received.length = 0;
    await gateway.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("gets the events in lists", async () => {
    await start("refuse");
    await gateway.exec(ANN);
    await soon(() => expect(received.map(({ stage }) => stage)).toContain("ResponseComplete"));
  });

  it("dead, refuse: new sessions get 503, and none of the events is lost", async () => {
    await start("refuse");
    status = 500;
    await gateway.exec(ANN);
    await soon(async () => expect((await gateway.exec(ANN)).status).toBe(503));
    expect(await gateway.isReady("audit")).toBe(false);
    status = 200;
    await soon(async () => expect((await gateway.exec(ANN)).status).toBe(101));
    await soon(async () => expect(await gateway.isReady("audit")).toBe(true));
    await soon(() =>
      expect(received.filter(({ responseStatus }) => responseStatus?.code === 503).length).toBeGreaterThan(0),
    );
  });

  it("blocking: the request waits until its event is there", async () => {
    await start("refuse", { mode: "blocking", maxWait: "10m" });
    await gateway.exec(ANN);
    expect(received.map(({ stage }) => stage)).toContain("RequestReceived");
    status = 500;
    expect((await gateway.exec(ANN)).status).toBe(503);
    status = 200;
    expect((await gateway.exec(ANN)).status).toBe(101);
  });

  it("dead, continue: sessions go on and what has no room is counted as lost", async () => {
    await start("continue", { maxQueuedEvents: 2 });
    status = 500;
    for (let times = 0; times < 3; times += 1) expect((await gateway.exec(ANN)).status).toBe(101);
    const lost = await gateway.metric('sluice_audit_events_total{backend="webhook",result="lost"}');
    expect(Number(lost[0]?.split(" ")[1])).toBeGreaterThan(0);
  });
});
