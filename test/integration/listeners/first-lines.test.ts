import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { eventually } from "../../support/eventually.ts";
import { runWebNode } from "../../support/fake-nodes.ts";
import { FrontDoor } from "../../support/front-door.ts";

let door: FrontDoor;
let node: FakeNode;
beforeAll(async () => {
  [door, node] = await Promise.all([FrontDoor.start([]), runWebNode()]);
});
afterAll(async () => {
  await Promise.all([door.stop(), node.close()]);
});

const portOf = (url: string | undefined): number => Number(new URL(url ?? "").port);
const LISTENERS: readonly (readonly [string, () => number, boolean])[] = [
  ["the API listener", () => portOf(door.gateway.apiServerUrl), false],
  ["the admin listener", () => portOf(door.gateway.adminUrl), false],
  ["the front door", () => door.httpPort, false],
  ["the front door over TLS", () => door.httpsPort, true],
  ["the fake node", () => node.port, false],
];

const HELLO = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
/** What Go's servers answer, except that they serve HTTP/1.2 and line ends of LF alone. */
const LINES: readonly (readonly [string, readonly string[], number])[] = [
  ["a line without a version", ["GET /\r\n"], 400],
  ["one that ends with LF", ["GET /\n"], 400],
  ["one that comes byte by byte", ["P", "OST", " /x", "\r", "\n"], 400],
  ["one behind an empty line", ["\r\n", "GET /\r\n"], 400],
  ["a line end of LF alone", ["GET / HTTP/1.1\nHost: a\r\n\r\n"], 400],
  ["a field that ends with LF", ["GET / HTTP/1.1\r\nHost: a\nAccept: b\r\n\r\n"], 400],
  ["a head that ends with LF", ["GET / HTTP/1.1\r\nHost: a\r\n\n"], 400],
  ["HTTP/1.2", ["GET / HTTP/1.2\r\nHost: a\r\n\r\n"], 505],
  ["HTTP/2.0", ["GET / HTTP/2.0\r\nHost: a\r\n\r\n"], 505],
  ["HTTP/3.0", ["GET / HTTP/3.0\r\nHost: a\r\n\r\n"], 505],
  ["a banner of SSH", ["SSH-2.0-OpenSSH_9.6\r\n"], 400],
  ["a ClientHello", [HELLO], 400],
];

async function answerTo(port: number, isSecure: boolean, parts: readonly string[]): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  onTestFinished(() => void socket.destroy());
  const client = isSecure ? connectTls({ socket, rejectUnauthorized: false }) : socket;
  let answer = "";
  client.on("data", (bytes: Buffer) => {
    answer += bytes.toString("latin1");
  });
  client.on("error", () => {});
  for (const part of parts) {
    await new Promise((resolve) => client.write(part, "latin1", resolve));
    // Another read, as far as the kernel allows.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await eventually("an answer", () => answer !== "", { timeoutMs: 5_000 });
  return answer;
}

it.each(
  LISTENERS.flatMap(([name, port, isSecure]) =>
    LINES.map(([what, parts, status]) => [name, what, status, port, isSecure, parts] as const),
  ),
)("%s answers %s at once with %s", async (_name, _what, status, port, isSecure, parts) => {
  const answer = await answerTo(port(), isSecure, parts);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} (?:.*\r\n)*Connection: close\r\n`));
});

it.each(LISTENERS)("%s serves a request that comes byte by byte", async (_name, port, isSecure) => {
  const parts = ["\r\n", "GET", " / HT", "TP/1.1", "\r", "\nHost: a\r\n\r", "\n"];
  expect(await answerTo(port(), isSecure, parts)).toMatch(/^HTTP\/1\.1 (?:200|401|404) /);
});

it.each(LISTENERS.slice(0, 2))("%s refuses prior knowledge of HTTP/2 at once", async (_name, port) => {
  const answer = await answerTo(port(), false, ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"]);
  expect(answer).toMatch(/^HTTP\/1\.1 505 .*unsupported protocol version$/s);
});
