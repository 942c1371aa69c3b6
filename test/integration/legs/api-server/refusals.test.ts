import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../../support/gateway-harness.ts";
import { V5Client } from "../../../support/v5-client.ts";

const EXEC = "/api/v1/namespaces/default/pods/web/exec?stdout=true&command=x";
const WEBSOCKET = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Protocol: v5.channel.k8s.io",
];
const SPDY = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];

let harness: GatewayHarness | undefined;
let node: Server | undefined;
const nodeSockets = new Set<Socket>();

afterEach(async () => {
  await harness?.close();
  for (const socket of nodeSockets) socket.destroy();
  await new Promise((resolve) => (node === undefined ? resolve(undefined) : node.close(resolve)));
  harness = node = undefined;
});

/** A node that answers every connection with these bytes and hangs up; undefined: says nothing. */
async function start(answer: string | undefined, options: Partial<HarnessOptions> = {}): Promise<string> {
  node = createServer((socket) => {
    nodeSockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => nodeSockets.delete(socket));
    socket.once("data", () => {
      if (answer !== undefined) socket.end(answer);
    });
  });
  await new Promise<void>((resolve) => node?.listen(0, "127.0.0.1", resolve));
  const { port } = node.address() as { port: number };
  harness = await startGatewayHarness({ kubeletPort: port, ...options });
  return harness.authority;
}

/** Everything the gateway answers to these bytes until it closes. */
function exchange(authority: string, request: string): Promise<string> {
  const [host, port] = authority.split(":");
  return new Promise((resolve) => {
    const socket = connect(Number(port), host);
    let answer = "";
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve(answer));
    socket.write(request, "latin1");
  });
}

function request(method: string, path: string, lines: readonly string[]): string {
  return `${[`${method} ${path} HTTP/1.1`, "Host: gateway", ...lines].join("\r\n")}\r\n\r\n`;
}

function parse(answer: string): { code: number; head: string; body: string } {
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  return { code: Number(head.split(" ")[1]), head, body };
}

const status = (code: number, message: string, extra: object = {}) => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  ...extra,
  code,
});

const swap = (path: string, from: string, to: string): string => path.replace(from, to);

describe("refusals before a node is dialled", () => {
  const rows: [name: string, method: string, path: string, lines: string[], answer: object][] = [
    [
      "unknown pod",
      "GET",
      swap(EXEC, "/web/", "/nope/"),
      WEBSOCKET,
      status(404, 'pods "nope" not found', { reason: "NotFound", details: { name: "nope", kind: "pods" } }),
    ],
    [
      "unknown namespace",
      "GET",
      swap(EXEC, "default", "other"),
      WEBSOCKET,
      status(404, 'pods "web" not found', { reason: "NotFound", details: { name: "web", kind: "pods" } }),
    ],
    [
      "unknown container",
      "GET",
      `${EXEC}&container=c`,
      WEBSOCKET,
      status(400, "container c is not valid for pod web", { reason: "BadRequest" }),
    ],
    [
      "dry run",
      "GET",
      `${EXEC}&dryRun=All`,
      WEBSOCKET,
      status(400, "dryRun is not supported", { reason: "BadRequest" }),
    ],
    [
      "an upgrade to h2c",
      "GET",
      EXEC,
      ["Connection: Upgrade", "Upgrade: h2c"],
      status(400, "unable to upgrade: only websocket and SPDY/3.1 are supported", { reason: "BadRequest" }),
    ],
    [
      "a list of upgrades",
      "GET",
      EXEC,
      ["Connection: Upgrade", "Upgrade: websocket, h2c"],
      status(400, "unable to upgrade: only websocket and SPDY/3.1 are supported", { reason: "BadRequest" }),
    ],
    [
      "no upgrade at all",
      "GET",
      EXEC,
      ["Connection: close"],
      status(400, "Upgrade request required", { reason: "BadRequest" }),
    ],
    [
      "no upgrade, unknown pod",
      "GET",
      swap(EXEC, "/web/", "/nope/"),
      ["Connection: close"],
      status(404, 'pods "nope" not found', { reason: "NotFound", details: { name: "nope", kind: "pods" } }),
    ],
    [
      "DELETE",
      "DELETE",
      EXEC,
      WEBSOCKET,
      status(405, "the server does not allow this method on the requested resource", {
        reason: "MethodNotAllowed",
        details: {},
      }),
    ],
  ];
  for (const [name, method, path, lines, answer] of rows) {
    it(name, async () => {
      const { code, body } = parse(await exchange(await start(undefined), request(method, path, lines)));
      expect(JSON.parse(body)).toEqual(answer);
      expect(code).toBe((answer as { code: number }).code);
      expect(body.length).toBeLessThan(1_024);
    });
  }

  const plain: [name: string, method: string, lines: string[], code: number, body: string][] = [
    ["POST websocket", "POST", [...WEBSOCKET, "Content-Length: 0"], 405, "bad method"],
    [
      "version 8",
      "GET",
      WEBSOCKET.map((line) => line.replace("13", "8")),
      400,
      "missing or bad WebSocket Version",
    ],
    [
      "missing key",
      "GET",
      WEBSOCKET.filter((line) => !line.includes("Key")),
      400,
      "mismatch challenge/response",
    ],
  ];
  for (const [name, method, lines, code, body] of plain) {
    it(name, async () => {
      const answer = parse(await exchange(await start(undefined), request(method, EXEC, lines)));
      expect([answer.code, answer.body]).toEqual([code, body]);
    });
  }

  it("two lengths are refused by the parser", async () => {
    const lines = [...SPDY, "Content-Length: 0", "Content-Length: 5"];
    expect(parse(await exchange(await start(undefined), request("POST", EXEC, lines))).code).toBe(400);
  });

  it("oversized headers get 431", async () => {
    const lines = [...WEBSOCKET, `X-Big: ${"x".repeat(2_000_000)}`];
    const { code, head, body } = parse(await exchange(await start(undefined), request("GET", EXEC, lines)));
    expect(code).toBe(431);
    expect(head).toContain("Connection: close");
    expect(body).toBe(
      "431 Request Header Fields Too Large: the request line and headers have more than 1048576 bytes",
    );
  });

  it("a command that is not UTF-8 is refused, and reaches no node", async () => {
    const authority = await start("HTTP/1.1 404 Not Found\r\n\r\n");
    const wrong = EXEC.replace("command=x", "command=caf%e9");
    const { code, body } = parse(await exchange(authority, request("GET", wrong, WEBSOCKET)));
    expect([code, JSON.parse(body).message]).toEqual([
      400,
      'the query parameter "command" is not valid UTF-8',
    ]);
    expect(nodeSockets.size).toBe(0);
    const target = EXEC.replace("command=x", "command=caf%c3%a9");
    expect(parse(await exchange(authority, request("GET", target, WEBSOCKET))).code).toBe(404);
  });

  it("a command of 900 KB reaches the node", async () => {
    const long = EXEC.replace("command=x", `command=${"x".repeat(900_000)}`);
    const { code } = parse(
      await exchange(await start("HTTP/1.1 404 Not Found\r\n\r\n"), request("GET", long, WEBSOCKET)),
    );
    expect(code).toBe(404);
  });

  it("a node without an address", async () => {
    const authority = await start(undefined, { kubeletHost: "" });
    const { body } = parse(await exchange(authority, request("GET", EXEC, WEBSOCKET)));
    expect(JSON.parse(body)).toEqual(status(500, "no preferred addresses found; known addresses: []"));
  });

  it("more sessions than allowed: 429 with Retry-After", async () => {
    const authority = await start(undefined, { limits: { maxConcurrentSessions: 1 } });
    const first = exchange(authority, request("GET", EXEC, WEBSOCKET));
    await expect.poll(() => harness?.context.sessions.size).toBe(1);
    const { code, head } = parse(await exchange(authority, request("GET", EXEC, WEBSOCKET)));
    expect(code).toBe(429);
    expect(head).toContain("Retry-After: 10");
    for (const socket of nodeSockets) socket.destroy();
    expect(parse(await first).code).toBe(500);
  });

  it("draining: 503", async () => {
    const authority = await start(undefined);
    await harness?.context.sessions.drain();
    const { code, body } = parse(await exchange(authority, request("GET", EXEC, WEBSOCKET)));
    expect([code, JSON.parse(body).reason]).toEqual([503, "ServiceUnavailable"]);
  });
});

describe("what a node answers instead of a 101, for a client to be translated", () => {
  const head = (line: string, body = ""): string =>
    `HTTP/1.1 ${line}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const rows: [name: string, answer: string, code: number, message: string][] = [
    ["200", head("200 OK", "hi"), 500, "invalid upgrade response: status code 200"],
    [
      "302",
      head("302 Found\r\nLocation: http://elsewhere/"),
      500,
      "invalid upgrade response: status code 302",
    ],
    [
      "403",
      head("403 Forbidden", "Forbidden (user=x, verb=create, resource=nodes, subresource(s)=[proxy])\n"),
      403,
      "Forbidden (user=x, verb=create, resource=nodes, subresource(s)=[proxy])",
    ],
    ["404", head("404 Not Found", "pod does not exist\n"), 404, "pod does not exist"],
    ["500", head("500 Internal Server Error", "container not found"), 500, "container not found"],
    ["nothing", "", 500, "EOF"],
    ["half a head", "HTTP/1.1 101 Swit", 500, "unexpected EOF"],
    [
      "101 to something else",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
      500,
      "unable to upgrade: missing upgrade headers in response",
    ],
    [
      "101 without a protocol",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
      500,
      'unable to negotiate protocol: client supports [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io], server returned ""',
    ],
    [
      "101 with v1",
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: channel.k8s.io\r\n\r\n",
      500,
      'unable to negotiate protocol: client supports [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io], server returned "channel.k8s.io"',
    ],
  ];
  for (const [name, answer, code, message] of rows) {
    it(name, async () => {
      const result = parse(await exchange(await start(answer), request("GET", EXEC, WEBSOCKET)));
      expect([result.code, JSON.parse(result.body).message]).toEqual([code, message]);
    });
  }

  it("garbage", async () => {
    const result = parse(
      await exchange(await start("\0\x01\x02 nonsense\r\n\r\n"), request("GET", EXEC, WEBSOCKET)),
    );
    expect([result.code, JSON.parse(result.body).kind]).toEqual([500, "Status"]);
  });

  it("silence: given up after the response time-out", async () => {
    const authority = await start(undefined, { timeouts: { upgradeResponseMs: 50 } });
    const result = parse(await exchange(authority, request("GET", EXEC, WEBSOCKET)));
    expect([result.code, JSON.parse(result.body).message]).toEqual([
      500,
      "net/http: timeout awaiting response headers",
    ]);
  });

  it("a refused dial names the address, as kube-apiserver words it", async () => {
    await start(undefined);
    await harness?.close();
    harness = await startGatewayHarness({ kubeletPort: 1 });
    const result = parse(await exchange(harness.authority, request("GET", EXEC, WEBSOCKET)));
    expect([result.code, JSON.parse(result.body)]).toEqual([
      500,
      status(500, "error dialing backend: dial tcp 127.0.0.1:1: connect: connection refused"),
    ]);
  });

  it("a SPDY client gets the node's refusal byte for byte", async () => {
    const body = "unable to upgrade: unable to negotiate protocol\n";
    const answer = `HTTP/1.1 403 Forbidden\r\nX-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\nX-Accepted-Stream-Protocol-Versions: v3.channel.k8s.io\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const result = await exchange(await start(answer), request("POST", EXEC, [...SPDY, "Content-Length: 0"]));
    expect(result).toContain(
      "X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\nX-Accepted-Stream-Protocol-Versions: v3",
    );
    expect(parse(result)).toMatchObject({ code: 403, body });
  });

  it("a failed session leaves no place taken and no socket open", async () => {
    const authority = await start("");
    await Promise.all(Array.from({ length: 20 }, () => exchange(authority, request("GET", EXEC, WEBSOCKET))));
    expect(harness?.context.sessions.size).toBe(0);
  });

  it("client-go's fallback works: the refusal is an HTTP answer, not a 101", async () => {
    const client = new V5Client(await start(""));
    await expect(client.opened).rejects.toThrow("Unexpected server response: 500");
  });
});
