import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../../support/gateway-harness.ts";
import { untilStill } from "../../../support/still.ts";

const MIB = 1024 * 1024;
const WEBSOCKET = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Protocol: v5.channel.k8s.io",
];

let harness: GatewayHarness | undefined;
let node: Server | undefined;
const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await harness?.close();
  await new Promise((resolve) => (node === undefined ? resolve(undefined) : node.close(resolve)));
  harness = node = undefined;
});

/** A node whose every connection is handed to the test once a request has come. */
async function start(
  onRequest: (socket: Socket) => void,
  options: Partial<HarnessOptions> = {},
): Promise<string> {
  node = createServer((socket) => {
    keep(socket).once("data", () => onRequest(socket));
  });
  await new Promise<void>((resolve) => node?.listen(0, "127.0.0.1", resolve));
  harness = await startGatewayHarness({ kubeletPort: (node.address() as { port: number }).port, ...options });
  return harness.authority;
}

function keep(socket: Socket): Socket {
  sockets.add(socket);
  socket.on("error", () => {});
  return socket;
}

function send(authority: string, lines: readonly string[]): Socket {
  const [host, port] = authority.split(":");
  const socket = keep(connect(Number(port), host));
  const path = "/api/v1/namespaces/default/pods/web/exec?stdout=true";
  socket.write(`${[`GET ${path} HTTP/1.1`, "Host: gateway", ...lines].join("\r\n")}\r\n\r\n`);
  return socket;
}

async function answerOf(socket: Socket): Promise<string> {
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  return answer;
}

describe("bounds of a request", () => {
  it("maxRequestHeaders: a request with more lines is refused whole, not cut", async () => {
    const authority = await start(() => {}, { limits: { maxRequestHeaders: 50 } });
    // Node 20 looks at the bound after every 32 lines.
    const filler = Array.from({ length: 100 }, (_, index) => `X-Filler-${index}: x`);
    expect(await answerOf(send(authority, [...filler, ...WEBSOCKET]))).toMatch(/^HTTP\/1.1 431 /);
  });

  it("maxRefusalBodyBytes: a node's endless refusal is read so far and no further", async () => {
    let nodeSocket: Socket | undefined;
    const authority = await start(
      (socket) => {
        nodeSocket = socket;
        socket.write(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${64 * MIB}\r\n\r\nnot you `);
        const more = (): void => {
          while (!socket.destroyed && socket.write(Buffer.alloc(MIB, "x")));
          socket.once("drain", more);
        };
        more();
      },
      { limits: { maxRefusalBodyBytes: 2_048 } },
    );
    const answer = await answerOf(send(authority, WEBSOCKET));
    expect(answer).toMatch(/^HTTP\/1.1 403 /);
    expect(answer).toContain("not you xxx");
    await expect.poll(() => nodeSocket?.destroyed).toBe(true);
    expect(nodeSocket?.bytesWritten).toBeLessThan(32 * MIB);
  });

  it("early bytes: a client that does not wait for its answer is not read without end", async () => {
    const authority = await start(() => {});
    const socket = send(authority, WEBSOCKET);
    await expect.poll(() => harness?.context.sessions.size).toBe(1);
    socket.write(Buffer.alloc(64 * MIB));
    // What loopback's own buffers take is a few MiB; the rest stays with the client.
    await untilStill("what the client has not sent yet", () => socket.writableLength);
    expect(socket.writableLength).toBeGreaterThan(32 * MIB);
  });
});
