import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { Readable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { RefusedUpgrade } from "../../../../packages/client/src/http/upgrade/upgrade-request.ts";
import { copyRefusal } from "../../../../src/http/upgrade/copy-refusal.ts";
import {
  closeServer,
  listen,
  openClient,
  openSocketCount,
  readToEnd,
  until,
} from "../../../support/http/loopback.ts";

// The bound under test.
const MAX_MEASURED_REFUSAL_BYTES = 64 * 1024;

const cleanups: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

function refusal(
  body: Readable,
  rawHeaders: RefusedUpgrade["rawHeaders"] = [],
  status = 403,
): RefusedUpgrade {
  return { kind: "refused", status, statusMessage: "No", rawHeaders, body };
}

async function serve(refused: RefusedUpgrade, deadlineMs?: number): Promise<number> {
  const sockets = new Set<Socket>();
  const server: Server = createServer();
  server.on("connection", (socket) => sockets.add(socket));
  server.on(
    "upgrade",
    (_request: IncomingMessage, socket: Duplex) => void copyRefusal(refused, socket, { deadlineMs }),
  );
  server.on("request", (_request: IncomingMessage, response: ServerResponse) => {
    void copyRefusal(refused, response, { deadlineMs });
  });
  const port = await listen(server);
  cleanups.push(() => closeServer(server, sockets));
  return port;
}

async function ask(
  port: number,
  head = "Connection: Upgrade\r\nUpgrade: x\r\n",
): Promise<{ text: string; isClean: boolean }> {
  const client = await openClient(port);
  client.write(`GET / HTTP/1.1\r\nHost: h\r\n${head}\r\n`);
  return readToEnd(client);
}

describe("copyRefusal", () => {
  it("measures a body that came without a length", async () => {
    const port = await serve(refusal(Readable.from([Buffer.from("ab"), Buffer.from("c")]), [["X-A", "1"]]));
    expect(await ask(port)).toEqual({
      text: "HTTP/1.1 403 No\r\nX-A: 1\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
      isClean: true,
    });
  });

  it("sends a long body in chunks, whole", async () => {
    const part = Buffer.alloc(MAX_MEASURED_REFUSAL_BYTES, "x");
    const port = await serve(refusal(Readable.from([part, part, Buffer.from("end")])));
    const { text } = await ask(port);
    expect(text).toContain("\r\nTransfer-Encoding: chunked\r\n");
    expect(text).toMatch(/\r\n3\r\nend\r\n0\r\n\r\n$/);
    expect(text.split("x").length - 1).toBe(2 * part.length);
  });

  it("keeps what a 426 asks for, and drops the other lines of the hop", async () => {
    const headers = [
      ["Upgrade", "websocket"],
      ["Connection", "Upgrade, X-B"],
      ["X-B", "1"],
      ["Content-Length", "0"],
    ] as const;
    const port = await serve(refusal(Readable.from([]), headers, 426));
    expect((await ask(port)).text).toBe(
      "HTTP/1.1 426 No\r\nContent-Length: 0\r\nUpgrade: websocket\r\nConnection: close, Upgrade\r\n\r\n",
    );
  });

  it("answers on a ServerResponse too, and closes", async () => {
    const port = await serve(
      refusal(Readable.from([Buffer.from("abc")]), [
        ["x-A", "1"],
        ["Content-Length", "3"],
      ]),
    );
    expect((await ask(port, "")).text).toBe(
      "HTTP/1.1 403 No\r\nx-A: 1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc",
    );
  });

  it("breaks the connection off at its deadline when the upstream's body stalls", async () => {
    const body = new Readable({ read() {} });
    const port = await serve(refusal(body, [["Content-Length", "10"]]), 50);
    expect((await ask(port)).text).toMatch(/^HTTP\/1.1 403 No/);
    expect(body.destroyed).toBe(true);
  });

  it("does not wait longer than its deadline for a client that never closes", async () => {
    const port = await serve(refusal(Readable.from([Buffer.from("abc")])), 50);
    const client = await openClient(port);
    client.write("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    let received = "";
    client.on("data", (chunk) => {
      received += chunk;
    });
    await until(() => received.endsWith("abc") && openSocketCount() === 1, "server side closed");
    client.destroy();
  });

  it("destroys the upstream's body when the client has left", async () => {
    const body = new Readable({ read() {} });
    const port = await serve(refusal(body));
    const client = await openClient(port);
    client.write("GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
    await until(() => body.listenerCount("readable") > 0, "being copied");
    client.resetAndDestroy();
    await until(() => body.destroyed, "body destroyed");
  });
});
