import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, connect, createServer as createTcpServer, type Server } from "node:net";
import { afterEach, expect, it } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const SERVERS: Readonly<Record<string, () => Server>> = {
  "HTTP/2 alone": () => createHttp2Server((_, response) => response.end("x")),
  // handshake_failure, as Java's servers answer a request without TLS.
  TLS: () => createTcpServer((socket) => socket.end(Buffer.of(0x15, 3, 3, 0, 2, 2, 40))),
  "HTTP/1.1": () => createServer((_, response) => response.end("x")),
};

/** What a door answers to these lines, until the connection ends. */
async function answerTo(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
  });
  socket.write(`GET / HTTP/1.1\r\nHost: a\r\n${lines.map((line) => `${line}\r\n`).join("")}\r\n`);
  await once(socket, "close");
  return answer;
}

const H2C = "kubernetes.io/h2c";
const CLOSE = ["Connection: close"];
const UPGRADE = ["Connection: Upgrade", "Upgrade: websocket"];

it.each([
  { speaks: "HTTP/2 alone", expected: "HTTP/1.1", remedy: `set appProtocol: ${H2C}` },
  { speaks: "HTTP/2 alone", lines: UPGRADE, expected: "HTTP/1.1", remedy: `set appProtocol: ${H2C}` },
  { speaks: "HTTP/2 alone", appProtocol: "http", expected: "HTTP/1.1", remedy: `set appProtocol: ${H2C}` },
  { speaks: "TLS", expected: "HTTP without TLS", remedy: "set appProtocol: https" },
  { speaks: "HTTP/1.1", appProtocol: H2C, expected: "HTTP/2", remedy: `remove appProtocol: ${H2C}` },
])("says what to write where a backend speaks $speaks, its appProtocol is $appProtocol, and $lines come", async ({
  speaks,
  lines = CLOSE,
  appProtocol,
  expected,
  remedy,
}) => {
  const server = SERVERS[speaks]?.() as Server;
  server.on("sessionError", () => {});
  cleanups.push(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const pods = [{ port: (server.address() as AddressInfo).port }];
  const door = await FrontDoor.start([
    ...serviceObjects("app", pods, appProtocol === undefined ? {} : { appProtocol }),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  cleanups.push(() => door.stop());
  for (let count = 0; count < 2; count += 1)
    expect(await answerTo(door.httpPort, lines)).toContain(
      `502 Bad Gateway: the backend does not speak ${expected}`,
    );
  const reason = appProtocol === undefined ? "MissingAppProtocol" : "WrongAppProtocol";
  expect((await door.readMetrics()).get(`sluice_ingress_problems{reason="${reason}"}`)).toBe(1);
  expect(door.logged.filter((line) => line.includes(`${remedy} there`))).toHaveLength(1);
});

it("says nothing of an upgrade that a backend of HTTP/2 cannot take", async () => {
  const server = SERVERS["HTTP/2 alone"]?.() as Server;
  server.on("sessionError", () => {});
  cleanups.push(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const pods = [{ port: (server.address() as AddressInfo).port }];
  const door = await FrontDoor.start([
    ...serviceObjects("app", pods, { appProtocol: H2C }),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  cleanups.push(() => door.stop());
  expect(await answerTo(door.httpPort, UPGRADE)).toContain(" 502 ");
  expect(await answerTo(door.httpPort, CLOSE)).toContain(" 200 ");
  expect([...(await door.readMetrics()).keys()].filter((name) => name.includes("AppProtocol"))).toEqual([]);
});
