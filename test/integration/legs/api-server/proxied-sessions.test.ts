import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { AccessGateway } from "../../../support/access-gateway.ts";
import { afterHead, listenRaw, type RawUpstream } from "../../../support/http/loopback.ts";
import { rawExchange } from "../../../support/raw-tls.ts";

const TOKEN = "proxied-token";
const NODE = "/api/v1/nodes/node/proxy";
const PODS = "/api/v1/namespaces/default/pods";
const SERVICES = "/api/v1/namespaces/default/services";
const DENY_ALL = { policy: { rules: [{ name: "closed", action: "deny" }] } };
const DENIED = 'policy rule "closed" denies it';

describe("sessions through proxy subresources, in front of an API server", () => {
  let gateway: AccessGateway;
  let apiServer: RawUpstream;
  const heads: string[] = [];
  afterEach(async () => {
    await gateway.stop();
    await apiServer.close();
    heads.length = 0;
  });

  const start = async (more: object) => {
    apiServer = await listenRaw((socket) =>
      afterHead(socket, (head) => {
        heads.push(head.toString("latin1"));
        socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      }),
    );
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), `${TOKEN},ann,1\n`);
      return {
        authentication: { tokenAuthFile: "tokens.csv" },
        upstreamAPIServer: { url: `http://127.0.0.1:${apiServer.port}` },
        audit: { log: { path: "audit.log" } },
        ...more,
      };
    });
  };

  const UPGRADE = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  const send = async (target: string, lines: readonly string[] = UPGRADE, method = "GET") => {
    const head = [`${method} ${target} HTTP/1.1`, "Host: g", `Authorization: Bearer ${TOKEN}`, ...lines];
    return (await rawExchange(gateway.authority, gateway.trusted, `${head.join("\r\n")}\r\n\r\n`)).status;
  };

  const SESSIONS = [
    `${NODE}/exec/default/web/main?command=id&output=1`,
    `${NODE}/exec/default/web/uid-1/main?command=id&output=1`,
    `${NODE}/attach/default/web/main?output=1`,
    `${NODE}/portForward/default/web?port=22`,
    "/api/v1/nodes/https:node:10250/proxy/exec/default/web/main?command=id",
    `${NODE}/anything`,
    `${PODS}/web:22/proxy`,
    `${PODS}/https:web:22/proxy/x%2Fy`,
    `${PODS}/web:22/proxy/%ff`,
    `${SERVICES}/web:22/proxy/`,
    `${SERVICES}/https%3Aweb%3Assh/proxy/x`,
  ];

  it.each(SESSIONS)("are refused by a policy that denies all: %s", async (target) => {
    await start(DENY_ALL);
    expect(await send(target)).toBe(403);
    expect(heads).toEqual([]);
  });

  it.each(SESSIONS)("are refused by AlwaysDeny: %s", async (target) => {
    await start({ authorization: { mode: ["AlwaysDeny"] } });
    expect(await send(target)).toBe(403);
    expect(heads).toEqual([]);
  });

  it.each(SESSIONS)("pass on where nothing forbids them, as they came: %s", async (target) => {
    await start({});
    expect(await send(target)).toBe(101);
    expect(heads[0]?.split("\r\n")[0]).toBe(`GET ${target} HTTP/1.1`);
  });

  it("are judged by pod, command and port, and written down", async () => {
    await start({
      policy: {
        rules: [
          { name: "no-id", match: { subresources: ["exec"], command: [{ prefix: ["id"] }] }, action: "deny" },
          { name: "no-ssh", match: { ports: ["20-30"] }, action: "deny" },
        ],
      },
    });
    expect(await send(`${NODE}/exec/default/web/main?command=id`)).toBe(403);
    expect(await send(`${NODE}/exec/default/web/main?command=ls`)).toBe(101);
    expect(await send(`${NODE}/exec/default/unknown/main?command=ls`)).toBe(404);
    expect(await send(`${PODS}/web:22/proxy/`)).toBe(403);
    expect(await send(`${PODS}/web:80/proxy/`)).toBe(101);
    // Which port of which pod a Service leads to is not known here.
    expect(await send(`${SERVICES}/web:80/proxy/`)).toBe(403);
    const file = path.join(gateway.folder, "audit.log");
    await expect.poll(() => (existsSync(file) ? readFileSync(file, "utf8") : "")).toContain("unknown");
    const events = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { stage: string; requestURI: string; user: { username: string } });
    expect(events[0]).toMatchObject({
      requestURI: `${NODE}/exec/default/web/main?command=id`,
      user: { username: "ann" },
      objectRef: { resource: "nodes", subresource: "proxy", name: "node" },
    });
  });

  it.each(SESSIONS)("are refused by a rule that records all, for they cannot be: %s", async (target) => {
    await start({ recording: { folder: "recordings", rules: [{ name: "all" }] } });
    expect(await send(target)).toBe(403);
    expect(heads).toEqual([]);
  });

  it("pass on where a rule records others, or none", async () => {
    const rules = [
      { name: "spared", match: { users: ["ann"], namespaces: ["default"] }, record: "none" },
      { name: "rest" },
    ];
    await start({ recording: { folder: "recordings", rules } });
    expect(await send(`${NODE}/exec/default/web/main?command=id`)).toBe(101);
    expect(await send(`${PODS}/web:80/proxy/`)).toBe(101);
    // What it opens is not known, so that no rule spares it.
    expect(await send(`${NODE}/anything`)).toBe(403);
  });

  it("that need no upgrade are refused, too: a kubelet runs commands for plain requests", async () => {
    await start(DENY_ALL);
    const length = "Content-Length: 0";
    expect(await send(`${NODE}/run/default/web/main?cmd=id`, [length], "POST")).toBe(403);
    expect(await send(`${NODE}/exec/default/web/main?command=id`, ["Connection: x-upgrade"])).toBe(403);
    expect(heads).toEqual([]);
  });

  it("are told apart from plain requests, which the API server judges", async () => {
    await start(DENY_ALL);
    for (const target of [`${NODE}/metrics`, `${PODS}/web:80/proxy/x`, `${SERVICES}/web/proxy/`])
      await send(target, []);
    expect(heads.map((head) => head.split(" ")[1])).toEqual([
      `${NODE}/metrics`,
      `${PODS}/web:80/proxy/x`,
      `${SERVICES}/web/proxy/`,
    ]);
  });

  it.each([
    `${PODS}/web/%65xec?command=id`,
    "/%61pi/v1/namespaces/default/pods/web/exec?command=id",
    "/api/v1/namespaces/default/%70ods/web/exec?command=id",
    `${PODS}/web/proxy/x/%2e%2e/%2e%2e/healthz`,
    `${NODE}/%65xec/default/web/main?command=id`,
    `${NODE}/exec%2Fdefault/web/main?command=id`,
  ])("are not reached by another spelling: %s", async (target) => {
    await start({});
    expect(await send(target)).toBe(400);
    expect(await send(target, [])).toBe(400);
    expect(heads).toEqual([]);
  });

  it("are counted like the others, by the side that ended them, and logged", async () => {
    await start({});
    expect(await send(`${NODE}/exec/default/web/main?command=ls`)).toBe(101);
    const labels = 'subresource="exec",plan="proxied"';
    const count = async (metric: string): Promise<number> => (await gateway.readMetrics()).get(metric) ?? 0;
    const ended = `sluice_streaming_sessions_ended_total{${labels},ended_by="node",cause="completed"}`;
    await expect.poll(() => count(ended)).toBe(1);
    expect(await count(`sluice_streaming_requests_total{${labels},code="101"}`)).toBe(1);
    const lines = gateway.logLines.map((line) => JSON.parse(line) as { msg: string });
    expect(lines.find(({ msg }) => msg === "session ended")).toMatchObject({
      session: {
        subresource: "exec",
        namespace: "default",
        pod: "web",
        node: "node",
        user: "ann",
        plan: "proxied",
      },
      endedBy: "node",
      cause: "completed",
    });
    await apiServer.close();
    expect(await send(`${PODS}/web:80/proxy/`)).toBe(503);
    const refused = 'sluice_streaming_requests_total{subresource="portforward",plan="proxied",code="503"}';
    expect(await count(refused)).toBe(1);
  });

  it("name the rule that refuses them", async () => {
    await start(DENY_ALL);
    const headers = { Authorization: `Bearer ${TOKEN}` };
    const answer = await gateway.exec({ headers }, ["v5.channel.k8s.io"], `${PODS}/web:22/proxy`);
    expect(JSON.parse(answer.body).message).toBe(`pods "web" is forbidden: ${DENIED}`);
  });
});
