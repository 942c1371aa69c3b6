import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { dial } from "../../../packages/client/src/connect.ts";
import { getObject } from "../../../packages/client/src/get-object.ts";
import { Target } from "../../../packages/client/src/target.ts";
import { listenRaw, openSocketCount, type RawUpstream, until } from "../../support/http/loopback.ts";

const OBJECT = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}';
const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";
const exec = { path: "/exec", transport: "spdy", protocols: ["v4.channel.k8s.io"] } as const;

let server: RawUpstream;
afterEach(async () => {
  await server.close();
  await until(() => openSocketCount() === 0, "all sockets are closed");
});

/** Gives each request the next answer, whatever connection it comes by. */
async function serve(...answers: readonly (string | ((socket: Socket) => void))[]): Promise<Target> {
  const left = [...answers];
  server = await listenRaw((socket) => {
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      if (!received.endsWith("\r\n\r\n")) return;
      received = "";
      const answer = left.shift();
      if (typeof answer === "string") socket.write(answer);
      else answer?.(socket);
    });
  });
  return new Target({ url: `http://127.0.0.1:${server.port}`, proxy: "none" });
}

/** The client has closed its first connection. */
const untilLeft = () => until(() => server.sockets[0]?.readableEnded === true, "the client has left");

describe("the connection of an object that was read", () => {
  it("carries the next one, whatever the status, and then a session", async () => {
    const refusal = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n";
    const target = await serve(OBJECT, refusal, OBJECT, `${SWITCHED}behind`);
    expect(await getObject(target, "/pod")).toEqual({ a: 1 });
    await expect(getObject(target, "/other")).rejects.toMatchObject({ httpStatus: 404 });
    expect(await getObject(target, "/pod")).toEqual({ a: 1 });
    const { socket, head } = await dial(target, exec);
    expect(server.sockets.length).toBe(1);
    const chunks: Buffer[] = [head];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk)).resume();
    server.sockets[0]?.end(" it");
    await once(socket, "end");
    expect(Buffer.concat(chunks).toString()).toBe("behind it");
    socket.destroy();
  });

  it("is a session's own then: two at once have two", async () => {
    const target = await serve(OBJECT, SWITCHED, SWITCHED);
    await getObject(target, "/pod");
    const sessions = await Promise.all([dial(target, exec), dial(target, exec)]);
    expect(server.sockets.length).toBe(2);
    for (const { socket } of sessions) socket.destroy();
  });

  it.each([
    ["says so", OBJECT.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")],
    ["speaks HTTP/1.0", OBJECT.replace("1.1", "1.0")],
    ["sends more than was asked for", `${OBJECT}HTTP/1.1 200 OK\r\n`],
    [
      "ends the answer by closing",
      (socket: Socket) => socket.end(OBJECT.replace("Content-Length: 7\r\n", "")),
    ],
    ["closes after it", (socket: Socket) => socket.end(OBJECT)],
  ])("is not used again where the server %s", async (_, answer) => {
    const target = await serve(answer, OBJECT);
    expect(await getObject(target, "/pod")).toEqual({ a: 1 });
    await untilLeft();
    expect(await getObject(target, "/pod")).toEqual({ a: 1 });
    expect(server.sockets.length).toBe(2);
  });

  it("is not used again after a 101, behind which there is no HTTP", async () => {
    const target = await serve(SWITCHED, OBJECT);
    await expect(getObject(target, "/pod")).rejects.toMatchObject({ leg: "http", httpStatus: 101 });
    expect(await getObject(target, "/pod")).toEqual({ a: 1 });
    expect(server.sockets.length).toBe(2);
  });

  it("is not used again after bytes that answer no request", async () => {
    const target = await serve(OBJECT, OBJECT);
    await getObject(target, "/pod");
    server.sockets[0]?.write("HTTP/1.1 408 Request Timeout\r\n\r\n");
    await untilLeft();
    expect(await getObject(target, "/pod")).toEqual({ a: 1 });
  });

  it("is closed after a second in which nothing was asked for", async () => {
    const target = await serve(OBJECT);
    const startedMs = performance.now();
    await getObject(target, "/pod");
    await untilLeft();
    expect(performance.now() - startedMs).toBeGreaterThan(990);
  });
});
