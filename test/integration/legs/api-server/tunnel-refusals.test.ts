import type { Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../../support/gateway-harness.ts";
import {
  afterHead,
  listenRaw,
  openClient,
  type RawUpstream,
  readToEnd,
} from "../../../support/http/loopback.ts";
import { TUNNEL_PROTOCOL, TunnelClient } from "../../../support/tunnel-client.ts";

const HEAD_LINES = [
  "HTTP/1.1 101 Switching Protocols",
  "Connection: Upgrade",
  "Upgrade: SPDY/3.1",
  "X-Stream-Protocol-Version: portforward.k8s.io",
];
const TUNNEL_METRIC = "apiserver_stream_tunnel_requests_total{";

let harness: GatewayHarness | undefined;
let node: RawUpstream | undefined;

afterEach(async () => {
  await harness?.close();
  await node?.close();
  harness = node = undefined;
});

async function start(
  answer: (socket: Socket) => void,
  options: Partial<HarnessOptions> = {},
): Promise<string> {
  node = await listenRaw((socket) => afterHead(socket, () => answer(socket)));
  harness = await startGatewayHarness({ kubeletPort: node.port, ...options });
  return harness.authority;
}

/** Each byte a write, and a segment, of its own. */
async function byteByByte(socket: Socket, text: string): Promise<void> {
  socket.setNoDelay(true);
  for (const byte of Buffer.from(text, "latin1")) {
    socket.write(Buffer.of(byte));
    await nextTurn();
  }
}

const metrics = async (): Promise<string[] | undefined> =>
  (await harness?.metric(TUNNEL_METRIC))?.filter((line) => !line.endsWith(" 0"));

describe("TestTunnelingHandler_UpstreamSPDYServerErrorPropagated", () => {
  for (const status of [500, 502, 503, 403, 404]) {
    it(`${status}: status, headers and body reach the client; metric ${status}`, async () => {
      const body = `upstream says ${status}\n`;
      const refusal = await TunnelClient.refused(
        await start((socket) =>
          socket.write(
            `HTTP/1.1 ${status} Whatever\r\nContent-Type: text/x-custom\r\nX-Custom: one\r\nX-Custom: two\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
          ),
        ),
      );
      expect([refusal.status, refusal.body]).toEqual([status, body]);
      expect(refusal.headers).toMatchObject({ "content-type": "text/x-custom", "x-custom": "one, two" });
      expect(await metrics()).toEqual([`${TUNNEL_METRIC}code="${status}"} 1`]);
      expect(harness?.context.sessions.size).toBe(0);
      await expect
        .poll(() => node?.sockets.every((socket) => socket.readableEnded || socket.destroyed))
        .toBe(true);
    });
  }

  it("a body in chunks, a byte at a time, arrives decoded and whole", async () => {
    const refusal = await TunnelClient.refused(
      await start((socket) => {
        void byteByByte(
          socket,
          "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n",
        );
      }),
    );
    expect(refusal).toMatchObject({ status: 503, body: "abcdefg" });
  });
});

describe("TestTunnelingHandler_HeaderInterceptingConn", () => {
  const good: [name: string, write: (socket: Socket) => void][] = [
    ["byte by byte", (socket) => void byteByByte(socket, `${HEAD_LINES.join("\r\n")}\r\n\r\npayload`)],
    ["one write, payload behind it", (socket) => socket.write(`${HEAD_LINES.join("\r\n")}\r\n\r\npayload`)],
    ["line ends of LF alone", (socket) => socket.write(`${HEAD_LINES.join("\n")}\n\npayload`)],
    ["LF alone, byte by byte", (socket) => void byteByByte(socket, `${HEAD_LINES.join("\n")}\n\npayload`)],
    ["mixed line ends", (socket) => socket.write(`${HEAD_LINES.join("\r\n")}\n\r\npayload`)],
    [
      "an interim response before it",
      (socket) => socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${HEAD_LINES.join("\r\n")}\r\n\r\npayload`),
    ],
    [
      "other case, tokens in lists",
      (socket) =>
        socket.write(
          "HTTP/1.1 101 x\r\nconnection: keep-alive, UPGRADE\r\nUPGRADE: spdy/3.1\r\nx-stream-protocol-version:  portforward.k8s.io \r\n\r\npayload",
        ),
    ],
  ];
  for (const [name, write] of good) {
    it(name, async () => {
      const client = await TunnelClient.open(await start(write));
      expect(client.protocol).toBe(TUNNEL_PROTOCOL);
      await expect.poll(() => client.bytes().toString()).toBe("payload");
      client.socket.terminate();
    });
  }

  const headWith = (...lines: string[]): string => `${lines.join("\r\n")}\r\n\r\n`;
  const [statusLine = "", connection = "", upgrade = "", version = ""] = HEAD_LINES;
  const bad: [name: string, answer: string, message: string][] = [
    ["oversized", `${headWith(...HEAD_LINES, `X-Big: ${"x".repeat(8_192)}`)}`, "header size limit exceeded"],
    [
      "oversized without an end",
      `${statusLine}\r\nX-Big: ${"x".repeat(9_000)}`,
      "header size limit exceeded",
    ],
    [
      "a line without a colon",
      headWith(...HEAD_LINES, "nonsense"),
      'malformed MIME header: missing colon: ""',
    ],
    [
      "a space before the colon",
      headWith(statusLine, "Upgrade : SPDY/3.1"),
      'malformed MIME header line: "Upgrade "',
    ],
    ["a status that is none", headWith("HTTP/1.1 1O1 Switching"), 'malformed HTTP status code "1O1"'],
    [
      "no Connection",
      headWith(statusLine, upgrade, version),
      "unable to upgrade: missing upgrade headers in response",
    ],
    [
      "no Upgrade",
      headWith(statusLine, connection, version),
      "unable to upgrade: missing upgrade headers in response",
    ],
    [
      "another Upgrade",
      headWith(statusLine, connection, "Upgrade: websocket", version),
      "unable to upgrade: missing upgrade headers in response",
    ],
    [
      "no protocol version",
      headWith(statusLine, connection, upgrade),
      'unable to negotiate protocol: client supports [portforward.k8s.io], server returned ""',
    ],
    [
      "a version that was not offered",
      headWith(statusLine, connection, upgrade, "X-Stream-Protocol-Version: v4.channel.k8s.io"),
      'unable to negotiate protocol: client supports [portforward.k8s.io], server returned "v4.channel.k8s.io"',
    ],
    ["200", headWith("HTTP/1.1 200 OK", "Content-Length: 0"), "invalid upgrade response: status code 200"],
    [
      "302",
      headWith("HTTP/1.1 302 Found", "Location: http://x/"),
      "invalid upgrade response: status code 302",
    ],
  ];
  for (const [name, answer, message] of bad) {
    it(`500 for the client: ${name}`, async () => {
      const limits = { maxUpgradeResponseHeadBytes: 8_192 };
      const { status, body } = await TunnelClient.refused(
        await start((socket) => socket.write(answer), { limits }),
      );
      expect([status, JSON.parse(body).message]).toEqual([500, message]);
      expect(await metrics()).toEqual([`${TUNNEL_METRIC}code="500"} 1`]);
      // The node's connection does not outlive the refusal.
      await expect
        .poll(() => node?.sockets.every((socket) => socket.readableEnded || socket.destroyed))
        .toBe(true);
      expect(harness?.context.sessions.size).toBe(0);
    });
  }

  for (const [name, answer, message] of [
    ["before a byte", "", "EOF"],
    ["in the head", "HTTP/1.1 101 Swit", "unexpected EOF"],
  ] as const) {
    it(`500 when the node closes ${name}`, async () => {
      const { status, body } = await TunnelClient.refused(await start((socket) => socket.end(answer)));
      expect([status, JSON.parse(body).message]).toEqual([500, message]);
    });
  }
});

describe("a tunnel request that is no good WebSocket request", () => {
  const lines = [
    "Host: gateway",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Sec-WebSocket-Protocol: ${TUNNEL_PROTOCOL}`,
  ];
  const rows: [name: string, lines: string[], code: number][] = [
    ["no key", lines.filter((line) => !line.includes("Key")), 400],
    ["version 8", lines.map((line) => line.replace("13", "8")), 400],
  ];
  for (const [name, sent, code] of rows) {
    it(`${name}: ${code}, and no node is dialled`, async () => {
      const authority = await start(() => {});
      const socket = await openClient(Number(authority.split(":")[1]));
      const path = "/api/v1/namespaces/default/pods/web/portforward";
      socket.write(`${[`GET ${path} HTTP/1.1`, ...sent].join("\r\n")}\r\n\r\n`);
      expect((await readToEnd(socket)).text).toContain(`HTTP/1.1 ${code} `);
      expect(node?.sockets).toEqual([]);
      expect(await metrics()).toEqual([`${TUNNEL_METRIC}code="500"} 1`]);
    });
  }

  it("a chosen version that a client smuggled in is refused, and the node let go", async () => {
    const authority = await start((socket) =>
      socket.write(`${HEAD_LINES.slice(0, 3).join("\r\n")}\r\nX-Stream-Protocol-Version: smuggled\r\n\r\n`),
    );
    const socket = await openClient(Number(authority.split(":")[1]));
    const path = "/api/v1/namespaces/default/pods/web/portforward";
    const sent = [...lines, "X-Stream-Protocol-Version: smuggled"];
    socket.write(`${[`GET ${path} HTTP/1.1`, ...sent].join("\r\n")}\r\n\r\n`);
    expect((await readToEnd(socket)).text).toContain("unable to negotiate protocol");
    await expect.poll(() => node?.sockets[0]?.readableEnded || node?.sockets[0]?.destroyed).toBe(true);
  });
});
