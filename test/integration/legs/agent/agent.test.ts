import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { startConnectProxy } from "../../../support/connect-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { ask, connectHttp2, openWebSocket } from "../../../support/http2-client.ts";
import { AGENT_TOKEN, TestAgent, USER_TOKEN } from "../../../support/test-agent.ts";

const EXEC = "/api/v1/namespaces/default/pods/web/exec?command=secret-word&stdout=true";
const V5 = "v5.channel.k8s.io";

let server: Server;
let heard: IncomingMessage[];
let answer: (request: IncomingMessage, response: ServerResponse) => void;
let onUpgrade: (request: IncomingMessage, socket: Socket, head: Buffer) => void;
let agent: TestAgent;
let url: string;
const stops: (() => unknown)[] = [];

beforeEach(async () => {
  heard = [];
  answer = (_request, response) => response.end("{}");
  const webSockets = new WebSocketServer({ noServer: true, handleProtocols: ([first]) => first ?? false });
  onUpgrade = (request, socket, head) =>
    webSockets.handleUpgrade(request, socket, head, (opened) => {
      opened.on("message", (data) => opened.send(data));
    });
  server = createServer((request, response) => {
    heard.push(request);
    answer(request, response);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Socket, head: Buffer) => {
    heard.push(request);
    socket.on("error", () => {});
    onUpgrade(request, socket, head);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(async () => {
  await agent?.stop();
  for (const stop of stops.splice(0)) await stop();
  server.closeAllConnections();
  server.close();
});

describe("the agent's token", () => {
  it.each([
    ["none", {}],
    ["another one", { Authorization: "Bearer the-agents-own-tokem" }],
    ["its beginning", { Authorization: `Bearer ${AGENT_TOKEN.slice(0, -1)}` }],
    ["the user's own", { Authorization: `Bearer ${USER_TOKEN}` }],
    ["the right one as another scheme", { Authorization: `Basic ${AGENT_TOKEN}` }],
  ])("is asked for: %s is answered 401, and the API server hears nothing", async (_what, headers) => {
    agent = await TestAgent.start({ server: url });
    const given = { Authorization: "", ...headers };
    const plain = await agent.fetch("/api/v1/pods", { headers: given });
    expect(plain.status).toBe(401);
    expect(JSON.parse(plain.body)).toMatchObject({ kind: "Status", reason: "Unauthorized" });
    for (const target of [EXEC, "/api/v1/namespaces/default/pods/web/proxy/"]) {
      const upgrade = { ...given, Connection: "Upgrade", Upgrade: "SPDY/3.1" };
      expect((await agent.fetch(target, { method: "POST", headers: upgrade })).status).toBe(401);
    }
    expect(heard).toEqual([]);
  });

  it("does not travel on, in a header or as a subprotocol: the user's own credentials do", async () => {
    agent = await TestAgent.start({ server: url });
    await agent.fetch("/api", { headers: { Cookie: "session=1", "X-Forwarded-For": "10.0.0.1" } });
    const bearer = `base64url.bearer.authorization.k8s.io.${Buffer.from(AGENT_TOKEN).toString("base64url")}`;
    const socket = agent.webSocket(EXEC, [V5, bearer], { Authorization: "" });
    await once(socket, "open");
    socket.terminate();
    expect(heard).toHaveLength(2);
    for (const { headers } of heard) {
      expect(headers).toMatchObject({ authorization: `Bearer ${USER_TOKEN}`, host: new URL(url).host });
      expect(headers).not.toHaveProperty("cookie");
      expect(headers).not.toHaveProperty("x-forwarded-for");
      expect(JSON.stringify(headers)).not.toContain(AGENT_TOKEN);
      expect(JSON.stringify(headers)).not.toContain("base64url.bearer");
    }
  });
});

describe("requests", () => {
  it("keep their path below that of the kubeconfig's server, their query, method and body", async () => {
    agent = await TestAgent.start({ server: `${url}/k8s/clusters/c1/` });
    answer = (request, response) => request.pipe(response);
    const answered = await agent.fetch("/apis/x?a=%2F&b=1", { method: "PATCH", body: "the body" });
    expect(answered).toMatchObject({ status: 200, body: "the body" });
    expect(heard[0]).toMatchObject({ method: "PATCH", url: "/k8s/clusters/c1/apis/x?a=%2F&b=1" });
    const socket = agent.webSocket(EXEC, V5);
    await once(socket, "open");
    socket.terminate();
    expect(heard[1]?.url).toBe(`/k8s/clusters/c1${EXEC}`);
  });

  it("are answered as the answer comes: a watch brings its events one by one", async () => {
    agent = await TestAgent.start({ server: url });
    let send: (text: string) => void = () => {};
    answer = (_request, response) => {
      send = (text) => void response.write(text);
      send("first");
    };
    const answered = fetchStream(agent, "/api/v1/pods?watch=true");
    const seen: string[] = [];
    for await (const part of answered) {
      seen.push(part);
      if (seen.length === 2) break;
      send("second");
    }
    expect(seen).toEqual(["first", "second"]);
  });

  it("impersonate whom the client says, and otherwise whom the kubeconfig says", async () => {
    agent = await TestAgent.start({
      server: url,
      user: { token: USER_TOKEN, as: "ann", "as-groups": ["dev"] },
    });
    await agent.fetch("/api");
    expect(heard[0]?.headers).toMatchObject({ "impersonate-user": "ann", "impersonate-group": "dev" });
    await agent.fetch("/api", { headers: { "Impersonate-User": "bob" } });
    const socket = agent.webSocket(EXEC, V5, { "Impersonate-User": "bob", "Sluice-Reason": "ticket 7" });
    await once(socket, "open");
    socket.terminate();
    for (const { headers } of heard.slice(1)) {
      expect(headers["impersonate-user"]).toBe("bob");
      expect(headers).not.toHaveProperty("impersonate-group");
    }
    expect(heard[2]?.headers["sluice-reason"]).toBe("ticket 7");
  });

  it("go through the kubeconfig's proxy, upgrades too", async () => {
    const proxy = await startConnectProxy({ credentials: "u:p" });
    stops.push(() => proxy.close());
    const cluster = { "proxy-url": `http://u:p@127.0.0.1:${proxy.port}` };
    agent = await TestAgent.start({ server: url, cluster });
    expect((await agent.fetch("/api")).status).toBe(200);
    for (const target of [EXEC, "/api/v1/namespaces/default/services/web/proxy/chat"]) {
      const socket = agent.webSocket(target, V5);
      await once(socket, "open");
      // Of a command: on the channel of its input.
      socket.send("\0to and fro");
      expect(String((await once(socket, "message"))[0])).toBe("\0to and fro");
      socket.terminate();
    }
    expect(proxy.asked).toEqual(Array(3).fill(new URL(url).host));
    const refusing = { "proxy-url": `http://127.0.0.1:${proxy.port}` };
    await agent.stop();
    agent = await TestAgent.start({ server: url, cluster: refusing });
    for (const answered of [await agent.fetch("/api"), await refusalOf(agent, EXEC)]) {
      expect(answered.body).toContain("proxy: 407");
      expect(answered.status).toBeGreaterThanOrEqual(502);
    }
  });
});

describe("over HTTP/2", () => {
  let client: ClientHttp2Session;
  beforeEach(async () => {
    agent = await TestAgent.start({ server: url });
    client = await connectHttp2(agent.url.href);
  });
  afterEach(() => client.destroy());
  const headers = { authorization: `Bearer ${AGENT_TOKEN}` };

  it("requests and a WebSocket share a connection, and go on as they would over HTTP/1.1", async () => {
    answer = (request, response) => request.pipe(response);
    const posted = await ask(client, "/apis/x?b=1", { ...headers, ":method": "POST" }, "the body");
    expect(posted).toMatchObject({ status: 200, body: "the body" });
    const opened = await openWebSocket(client, EXEC, { ...headers, "sec-websocket-protocol": V5 });
    if ("status" in opened) throw new Error(opened.body);
    opened.socket.send(Buffer.from("\0typed"));
    const [echoed] = await once(opened.socket, "message");
    expect(String(echoed)).toBe("\0typed");
    opened.socket.terminate();
    expect(heard.map(({ httpVersion, method }) => `${httpVersion} ${method}`)).toEqual([
      "1.1 POST",
      "1.1 GET",
    ]);
    expect(heard[1]).toMatchObject({ url: EXEC, headers: { authorization: `Bearer ${USER_TOKEN}` } });
    expect(JSON.stringify(heard[1]?.headers)).not.toContain(AGENT_TOKEN);
  });

  it.each([
    "fin",
    "reset",
  ] as const)("a client that is gone (%s) ends what it has asked for", async (cutBy) => {
    answer = (_request, response) => response.writeHead(200).write("it goes on");
    const proxy = await startFaultProxy(Number(agent.url.port), { cutAfterBytes: 1e12, maxCuts: 0, cutBy });
    stops.push(() => proxy.close());
    const killed = await connectHttp2(`https://127.0.0.1:${proxy.port}`);
    const watch = killed.request({ ":path": "/api/v1/pods?watch=true", ...headers });
    watch.on("error", () => {});
    await once(watch, "data");
    let isOver = false;
    heard[0]
      ?.on("error", () => {})
      .once("close", () => {
        isOver = true;
      });
    proxy.cutAll();
    await expect.poll(() => isOver).toBe(true);
    await expect.poll(() => proxy.connections).toBe(0);
    killed.destroy();
  });

  it("a client that stays is let go when the agent ends", async () => {
    answer = (_request, response) => response.writeHead(200).write("it goes on");
    const watch = client.request({ ":path": "/api/v1/pods?watch=true", ...headers });
    watch.on("error", () => {});
    await once(watch, "data");
    const closed = once(client, "close");
    await agent.stop();
    await closed;
  });

  it("its token is asked for, too", async () => {
    const given = { authorization: `Bearer ${USER_TOKEN}`, "sec-websocket-protocol": V5 };
    expect(await openWebSocket(client, EXEC, given)).toMatchObject({ status: 401 });
    expect(heard).toEqual([]);
  });
});

describe("an API server", () => {
  it("that is not there is a 503 with a Status, and the agent lives on", async () => {
    agent = await TestAgent.start({ server: "http://127.0.0.1:1" });
    for (const answered of [await agent.fetch("/api"), await refusalOf(agent, EXEC)]) {
      expect(answered.status).toBe(503);
      expect(JSON.parse(answered.body).message).toBe(
        "error trying to reach the API server: dial tcp 127.0.0.1:1: connect: connection refused",
      );
    }
  });

  it("that answers with 50 KB of HTML is quoted whole", async () => {
    const page = `<html>${"x".repeat(50_000)}</html>`;
    answer = (_request, response) => void response.writeHead(502).end(page);
    onUpgrade = (_request, socket) =>
      socket.end(`HTTP/1.1 502 Bad Gateway\r\nContent-Length: ${page.length}\r\n\r\n${page}`);
    agent = await TestAgent.start({ server: url });
    for (const answered of [await agent.fetch("/api"), await refusalOf(agent, EXEC)]) {
      expect(answered).toMatchObject({ status: 502, body: page });
    }
  });

  it("that breaks off in the middle of an answer is heard to", async () => {
    answer = (_request, response) => {
      response.writeHead(200, { "Content-Length": "100" });
      response.write("a part", () => response.destroy());
    };
    agent = await TestAgent.start({ server: url });
    await expect(agent.fetch("/api")).rejects.toThrow(/aborted|socket hang up/);
  });

  it("that no longer takes a token gets the one that is in the file now", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-token-"));
    stops.push(() => rmSync(folder, { recursive: true }));
    const tokenFile = path.join(folder, "token");
    writeFileSync(tokenFile, "old");
    let taken = "Bearer old";
    const isTaken = (request: IncomingMessage): boolean => request.headers.authorization === taken;
    answer = (request, response) => void response.writeHead(isTaken(request) ? 200 : 401).end();
    const accept = onUpgrade;
    onUpgrade = (request, socket, head) => {
      if (isTaken(request)) accept(request, socket, head);
      else socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    };
    agent = await TestAgent.start({ server: url, user: { tokenFile } });
    expect((await agent.fetch("/api")).status).toBe(200);
    writeFileSync(tokenFile, "new");
    taken = "Bearer new";
    const socket = agent.webSocket(EXEC, V5);
    await once(socket, "open");
    socket.terminate();
    expect((await agent.fetch("/api")).status).toBe(200);
    taken = "Bearer newer";
    writeFileSync(tokenFile, "newer");
    expect([(await agent.fetch("/api")).status, (await agent.fetch("/api")).status]).toEqual([401, 200]);
    taken = "nobody";
    expect((await refusalOf(agent, EXEC)).status).toBe(401);
  });
});

it("tells what it does without a token or a command", async () => {
  agent = await TestAgent.start({ server: url });
  const socket = agent.webSocket(EXEC, V5);
  await once(socket, "open");
  socket.terminate();
  await agent.fetch("/api");
  expect(agent.told.join("\n")).toContain("/exec?command=");
  for (const secret of [AGENT_TOKEN, USER_TOKEN]) expect(agent.told.join("\n")).not.toContain(secret);
});

it("ends sessions with a word when it ends", async () => {
  agent = await TestAgent.start({ server: url });
  const socket = agent.webSocket(EXEC, V5);
  await once(socket, "open");
  let last: Uint8Array = new Uint8Array(0);
  socket.on("message", (message: Buffer) => {
    last = message;
  });
  const closed = once(socket, "close");
  await agent.stop();
  await closed;
  expect(last[0]).toBe(3);
  expect(JSON.parse(Buffer.from(last.subarray(1)).toString())).toMatchObject({ status: "Failure" });
});

/** The answer to a WebSocket upgrade that is no 101. */
function refusalOf(from: TestAgent, target: string) {
  return from.fetch(target, {
    headers: {
      Connection: "Upgrade",
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
      "Sec-WebSocket-Protocol": V5,
    },
  });
}

async function* fetchStream(from: TestAgent, target: string): AsyncGenerator<string> {
  for await (const part of await from.open(target)) yield String(part);
}
