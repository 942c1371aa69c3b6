import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { HttpUpstream } from "../../../../packages/client/src/http/upstream/http-upstream.ts";
import { Impersonation } from "../../../../src/access/authn/impersonation.ts";
import type { Authorizer } from "../../../../src/access/authz/authorizer.ts";
import { createApiServer } from "../../../../src/legs/api-server/api-server.ts";
import { forwardToApiServer } from "../../../../src/legs/api-server/forward-to-api-server.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { closeServer, listen, openClient, readToEnd } from "../../../support/http/loopback.ts";

const PROXY_PATH = "/api/v1/namespaces/default/pods/web/proxy/ws?x=%2F";
const BEARER = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
/** What a front proxy would say of a caller. */
const CLAIMS: Record<string, string> = {
  "X-Remote-User": "system:admin",
  "x-remote-group": "system:masters",
  "X-REMOTE-EXTRA-a": "b",
};

/** Whom a caller would like to be. */
const IMPERSONATIONS: Record<string, string> = {
  "Impersonate-User": "system:admin",
  "iMPERSONATE-gROUP": "system:masters",
  "IMPERSONATE-UID": "0",
  "Impersonate-Extra-Scopes": "all",
};

const closing: (() => Promise<void>)[] = [];
let harness: GatewayHarness | undefined;
let upstream: { requests: IncomingMessage[]; upgraded: Duplex[]; port: number };

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  harness = undefined;
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

function answerOk(_request: IncomingMessage, response: ServerResponse): void {
  response.end("ok");
}

/** An API server that is scripted, and the gateway in front of it. Returns the gateway's port. */
async function start(
  { impersonates = false, answer = answerOk }: { impersonates?: boolean; answer?: Answer } = {},
  upgrade: (request: IncomingMessage, socket: Duplex) => void = switchTo,
): Promise<number> {
  const requests: IncomingMessage[] = [];
  const upgraded: Duplex[] = [];
  const sockets = new Set<Socket>();
  const apiServer = createServer((incoming, response) => {
    requests.push(incoming);
    void answer(incoming, response);
  });
  apiServer.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  apiServer.on("upgrade", (incoming, socket) => {
    requests.push(incoming);
    upgraded.push(socket);
    upgrade(incoming, socket);
  });
  const port = await listen(apiServer);
  closing.push(() => closeServer(apiServer, sockets));
  upstream = { requests, upgraded, port };
  return startGatewayTo(port, impersonates);
}

async function startGatewayTo(port: number, impersonates: boolean): Promise<number> {
  harness = await startGatewayHarness({ kubeletPort: 1 });
  closing.push(harness.close);
  const authenticator = {
    authenticate: async () => ({
      name: "jane",
      uid: "uid-7",
      groups: ["dev", "system:authenticated"],
      extra: {},
    }),
  };
  const pool = new HttpUpstream({ endpoint: { host: "127.0.0.1", port } });
  const authorizer: Authorizer = {
    authorize: async ({ verb }) => ({
      decision: verb.startsWith("impersonate") ? "deny" : "allow",
      reason: "",
    }),
  };
  const impersonation = new Impersonation(authorizer, true);
  const context = { ...harness.context, authenticator, authorizer, impersonation };
  const { server } = createApiServer(
    context,
    forwardToApiServer(context, { upstream: pool, impersonates }),
    {},
  );
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  closing.push(async () => {
    pool.close();
    await closeServer(server, sockets);
  });
  return listen(server);
}

function switchTo(_request: IncomingMessage, socket: Duplex): void {
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Kept: 1\r\n\r\n",
  );
  socket.on("data", (chunk) => socket.write(chunk));
}

async function get(port: number, path: string, options: object = {}) {
  const sent = request({ port, path, host: "127.0.0.1", ...options }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let body = "";
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

async function askUpgrade(port: number, path: string, lines: readonly string[] = []): Promise<Socket> {
  const socket = await openClient(port);
  const head = [
    `GET ${path} HTTP/1.1`,
    "Host: gateway",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ...lines,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  return socket;
}

describe("plain requests", () => {
  it("path, query and body travel as they are; status, headers and body come back", async () => {
    const port = await start({
      answer: async (incoming, response) => {
        let body = "";
        for await (const chunk of incoming) body += chunk;
        response.writeHead(201, { "X-Kept": "1", "Content-Type": "application/json" });
        response.end(`${incoming.method} ${incoming.url} ${body}`);
      },
    });
    const sent = request({
      port,
      host: "127.0.0.1",
      method: "PATCH",
      path: "/api/v1/namespaces/a/services/https:web:443/proxy/x%2Fy?a=1&b=%20",
    });
    sent.end("payload");
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    let body = "";
    for await (const chunk of response) body += chunk;
    expect([response.statusCode, body]).toEqual([
      201,
      "PATCH /api/v1/namespaces/a/services/https:web:443/proxy/x%2Fy?a=1&b=%20 payload",
    ]);
    expect(response.headers["x-kept"]).toBe("1");
    expect(upstream.requests[0]?.headers["x-forwarded-for"]).toBe("127.0.0.1");
    expect(upstream.requests[0]?.headers.host).toBe(`127.0.0.1:${upstream.port}`);
  });

  it("a watch: each event at once, and the API server hears when the client leaves", async () => {
    let events: ServerResponse | undefined;
    const port = await start({
      answer: (_incoming, response) => {
        events = response;
        response.writeHead(200, { "Content-Type": "application/json" });
        response.flushHeaders();
      },
    });
    const sent = request({ port, host: "127.0.0.1", path: "/api/v1/pods?watch=true" }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.on("error", () => {});
    for (const event of ["one", "two"]) {
      events?.write(event);
      expect(String((await once(response, "data"))[0])).toBe(event);
    }
    const left = once(events as ServerResponse, "close");
    sent.destroy();
    await left;
  });

  it("a streaming path that is no upgrade is not forwarded", async () => {
    const { status } = await get(await start(), "/api/v1/namespaces/default/pods/web/exec");
    expect([status, upstream.requests]).toEqual([400, []]);
  });
});

describe("who is asking", () => {
  const credentials = { Authorization: "Bearer secret", Cookie: "a=b" };

  it("without a client certificate the caller's own credentials pass through", async () => {
    await get(await start(), "/api", { headers: { ...credentials, "Impersonate-User": "bob" } });
    const { headers } = upstream.requests[0] as IncomingMessage;
    // The API server knows who the bearer is, and whether that one may impersonate.
    expect(headers).toMatchObject({ authorization: "Bearer secret", "impersonate-user": "bob" });
  });

  it("but a front proxy's headers do not, for requests and for upgrades: its certificate stays here", async () => {
    const port = await start();
    await get(port, "/api", { headers: { ...credentials, ...CLAIMS } });
    const lines = Object.entries(CLAIMS).map(([name, value]) => `${name}: ${value}`);
    const socket = await askUpgrade(port, PROXY_PATH, lines);
    await once(socket, "data");
    socket.destroy();
    expect(upstream.requests).toHaveLength(2);
    for (const { rawHeaders } of upstream.requests) expect(rawHeaders.join("\n")).not.toMatch(/x-remote-/i);
  });

  it("with one the gateway says for whom it speaks, and nothing of what the caller claims is left", async () => {
    await get(await start({ impersonates: true }), "/api", { headers: { ...credentials, ...CLAIMS } });
    const { headersDistinct, rawHeaders } = upstream.requests[0] as IncomingMessage;
    expect(headersDistinct).toMatchObject({
      "impersonate-user": ["jane"],
      "impersonate-uid": ["uid-7"],
      "impersonate-group": ["dev", "system:authenticated"],
    });
    const text = rawHeaders.join("\n");
    for (const word of ["secret", "masters", "system:admin", "EXTRA", "a=b"])
      expect(text).not.toContain(word);
  });

  it("who may not impersonate does not, in any case of letters", async () => {
    const port = await start({ impersonates: true });
    for (const [name, value] of Object.entries(IMPERSONATIONS)) {
      await get(port, "/api", { headers: { ...credentials, [name]: value } });
      const socket = await askUpgrade(port, PROXY_PATH, [`${name}: ${value}`]);
      await once(socket, "data");
      socket.destroy();
    }
    const text = upstream.requests.flatMap(({ rawHeaders }) => rawHeaders).join("\n");
    for (const word of ["masters", "system:admin", "scopes", "uid: 0"])
      expect(text.toLowerCase()).not.toContain(word);
  });

  it("Connection can not name the gateway's own impersonation away", async () => {
    const port = await start({ impersonates: true });
    await get(port, "/api", {
      headers: { Connection: "close, Impersonate-User, Impersonate-Group, X-Forwarded-For" },
    });
    const { headersDistinct } = upstream.requests[0] as IncomingMessage;
    expect(headersDistinct["impersonate-user"]).toEqual(["jane"]);
    expect(headersDistinct["x-forwarded-for"]).toEqual(["127.0.0.1"]);
  });

  it("upgrades: the same, and a bearer subprotocol stays here", async () => {
    const port = await start({ impersonates: true });
    const lines = Object.entries({ ...credentials, ...CLAIMS }).map(([name, value]) => `${name}: ${value}`);
    const socket = await askUpgrade(port, PROXY_PATH, [
      ...lines,
      `Sec-WebSocket-Protocol: ${BEARER}, binary.k8s.io`,
    ]);
    await once(socket, "data");
    const { rawHeaders, headersDistinct } = upstream.requests[0] as IncomingMessage;
    expect(headersDistinct["impersonate-user"]).toEqual(["jane"]);
    expect(headersDistinct["sec-websocket-protocol"]).toEqual(["binary.k8s.io"]);
    const text = rawHeaders.join("\n");
    for (const word of ["secret", "c2VjcmV0", "masters", "system:admin"]) expect(text).not.toContain(word);
    socket.destroy();
  });
});

describe("upgrades of other paths", () => {
  it("are carried both ways, and take a place that they give back", async () => {
    const socket = await askUpgrade(await start(), PROXY_PATH);
    expect(String((await once(socket, "data"))[0])).toContain("HTTP/1.1 101 Switching Protocols\r\n");
    expect(upstream.requests[0]?.url).toBe(PROXY_PATH);
    expect(harness?.context.sessions.size).toBe(1);
    socket.write("echo");
    expect(String((await once(socket, "data"))[0])).toBe("echo");
    upstream.upgraded[0]?.end();
    await readToEnd(socket);
    expect(harness?.context.sessions.size).toBe(0);
  });

  it("a refusal is the client's, and its place is free again", async () => {
    const port = await start({}, (_request, socket) =>
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
    );
    const { text } = await readToEnd(await askUpgrade(port, PROXY_PATH));
    expect(text).toContain("HTTP/1.1 403 Forbidden\r\n");
    await expect.poll(() => harness?.context.sessions.size).toBe(0);
  });

  it("h2c is refused here: 400", async () => {
    const socket = await openClient(await start());
    socket.write("GET /api HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n");
    const { text } = await readToEnd(socket);
    expect(text).toContain("HTTP/1.1 400 ");
    expect(upstream.requests).toEqual([]);
  });

  it("a 200 is no upgrade, but its answer: it is relayed, and no session is left", async () => {
    const port = await start({}, (_request, socket) =>
      socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    );
    expect((await readToEnd(await askUpgrade(port, PROXY_PATH))).text).toContain("HTTP/1.1 200 OK\r\n");
    await expect.poll(() => harness?.context.sessions.size).toBe(0);
  });
});

describe("an API server that is down", () => {
  it("503 as a Status, for requests and for upgrades", async () => {
    const port = await startGatewayTo(1, false);
    const { status, body } = await get(port, "/api/v1/pods");
    expect([status, JSON.parse(body)]).toMatchObject([
      503,
      {
        kind: "Status",
        message: "error trying to reach the API server: dial tcp 127.0.0.1:1: connect: connection refused",
      },
    ]);
    const { text } = await readToEnd(await askUpgrade(port, PROXY_PATH));
    expect(text).toContain("HTTP/1.1 503 Service Unavailable\r\n");
    expect(JSON.parse(text.split("\r\n\r\n")[1] ?? "")).toMatchObject({ kind: "Status", code: 503 });
    expect(harness?.context.sessions.size).toBe(0);
  });

  it("502 as a Status when it breaks off before its answer", async () => {
    const port = await start({ answer: (incoming) => void incoming.socket.destroy() });
    const { status, body } = await get(port, "/api/v1/pods");
    expect([status, JSON.parse(body).kind]).toEqual([502, "Status"]);
  });
});
