import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { AccessGateway, EXEC_PATH } from "../../support/access-gateway.ts";
import { eventually } from "../../support/eventually.ts";
import { afterHead, listenRaw, type RawUpstream } from "../../support/http/loopback.ts";

/** More than all buffers on the way hold. */
const LONG_BYTES = 32 * 1024 * 1024;

let gateway: AccessGateway;
let apiServer: RawUpstream;

beforeAll(async () => {
  apiServer = await listenRaw((socket) =>
    afterHead(socket, () => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${LONG_BYTES}\r\n\r\n`);
      socket.write(Buffer.alloc(LONG_BYTES));
    }),
  );
  gateway = await AccessGateway.start((folder) => {
    writeFileSync(path.join(folder, "tokens.csv"), "t,ann,1\n");
    return {
      timeouts: { streamIdle: "300ms", lingerIdle: "300ms", lingerMax: "1s", shutdownGracePeriod: "0s" },
      authentication: { tokenAuthFile: "tokens.csv" },
      authorization: { mode: ["AlwaysAllow"] },
      upstreamAPIServer: { url: `http://127.0.0.1:${apiServer.port}` },
    };
  });
});
afterAll(async () => {
  await gateway.stop();
  await apiServer.close();
});

const UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
const KEY = `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`;

function head(target: string, token: string, ...lines: string[]): string {
  return [`GET ${target} HTTP/1.1`, "Host: a", `Authorization: Bearer ${token}`, ...lines, "", ""].join(
    "\r\n",
  );
}

const LIST = head("/api/v1/pods", "t");
const LOG = head("/api/v1/namespaces/default/pods/web/log?follow=false", "t");

it.each([
  ["a list", LIST],
  ["a log", LOG],
  ["300 pipelined lists", LIST.repeat(300)],
  ["an exec behind a list", LIST + head(EXEC_PATH, "t", ...UPGRADE, KEY)],
  ["a head of HTTP/2.0 behind a list", `${LIST}GET / HTTP/2.0\r\nHost: a\r\n\r\n`],
  ["300 pipelined 401s", head("/api/v1/pods", "nobody").repeat(300)],
  ["401 to an exec", head(EXEC_PATH, "nobody", ...UPGRADE, KEY)],
  ["404 to an exec", head(EXEC_PATH.replace("/web/", "/none/"), "t", ...UPGRADE, KEY)],
])("%s over TLS holds neither connection nor backend of a client that reads nothing", async (_what, bytes) => {
  const descriptors = (): number => readdirSync("/proc/self/fd").length;
  await eventually("the ends of earlier ones", () => apiServer.sockets.every(({ destroyed }) => destroyed));
  const before = descriptors();
  const [host = "", port] = gateway.authority.split(":");
  const socket = connect({ host, port: Number(port), allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  const client = connectTls({ socket, rejectUnauthorized: false });
  client.on("error", () => {});
  await once(client, "secureConnect");
  client.pause();
  await new Promise((resolve) => client.write(bytes, resolve));
  expect(descriptors()).toBeGreaterThan(before);
  // The client's own end stays.
  await eventually("the ends", () => {
    const isLeft = apiServer.sockets.every(({ destroyed }) => destroyed);
    return isLeft && descriptors() <= before + 1;
  });
});
