import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { answering, listen, listenRaw } from "../../support/http/loopback.ts";

/** All that a client gets until its connection ends, and what the backend got. */
async function exchange(answer: string, lines: readonly string[], body = ""): Promise<[string, string]> {
  const upstream = await listenRaw(answering(answer));
  onTestFinished(() => upstream.close());
  return [await answerOf(upstream.port, lines, body), upstream.received()];
}

/** All that a client of the backend on this port gets until its connection ends. */
async function answerOf(port: number, lines: readonly string[], body = ""): Promise<string> {
  const door = await FrontDoor.start([
    ...serviceObjects("app", [{ port }]),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  const socket = connect(door.httpPort, "127.0.0.1").setEncoding("latin1");
  let received = "";
  socket.on("data", (part: string) => {
    received += part;
  });
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  await once(socket, "close");
  return received;
}

const UPGRADE = ["GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket"];

it.each([
  ["200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain", "plain"],
  ["200 in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nplain\r\n0\r\n\r\n", "plain"],
  ["204", "HTTP/1.1 204 No Content\r\n\r\n", ""],
  ["304", 'HTTP/1.1 304 Not Modified\r\nETag: "e"\r\n\r\n', ""],
  ["302", "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", ""],
])("an upgrade that is answered %s is relayed", async (status, answer, body) => {
  const [received] = await exchange(answer, UPGRADE);
  expect(received).toMatch(new RegExp(`^HTTP/1\\.1 ${status.slice(0, 3)} `));
  expect(received.slice(received.indexOf("\r\n\r\n") + 4)).toBe(body);
  if (status === "204" || status === "304") expect(received).not.toMatch(/content-length/i);
});

it.each([1, 2, 40, 400])("%i pipelined upgrades to h2c are answered in turn", async (count) => {
  const server = createServer((request, response) => response.end(`[${request.url}]`));
  onTestFinished(() => void server.close());
  const upgrades = Array.from({ length: count }, (_, index) => [
    `GET /${index} HTTP/1.1`,
    ...UPGRADE.slice(1, 3),
    "Upgrade: h2c",
    "",
  ]);
  const last = ["GET /last HTTP/1.1", "Host: a", "Connection: close"];
  const received = await answerOf(await listen(server), [...upgrades.flat(), ...last]);
  const paths = [...upgrades.map((_, index) => `[/${index}]`), "[/last]"];
  expect(received.match(/\[.*\]/g)).toEqual(paths);
});

it("h2c beside another protocol is not asked for", async () => {
  const answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
  const [, sent] = await exchange(answer, [...UPGRADE.slice(0, 3), "Upgrade: WebSocket, h2c"]);
  expect(sent).toMatch(/\r\nUpgrade: WebSocket\r\n/);
});

it("a POST with a body stays HTTP: its Upgrade is ignored, and so is what was for this hop alone", async () => {
  const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  const head = [
    "POST / HTTP/1.1",
    "Host: a",
    "Connection: Upgrade, X-Hop, close",
    "X-Hop: 1",
    "Upgrade: foo",
  ];
  const [received, sent] = await exchange(answer, [...head, "Content-Length: 4"], "body");
  expect(received).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*ok$/);
  expect(sent).toMatch(/^POST \/ HTTP\/1\.1\r\n[\s\S]*\r\n\r\nbody$/);
  expect(sent).not.toMatch(/x-hop|upgrade/i);
});
