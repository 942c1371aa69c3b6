import { once } from "node:events";
import net from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  RST,
  SpdySession,
  type SpdySessionHandler,
  type SpdyStream,
} from "../../../../protocols/spdy/index.ts";
import { StreamLog } from "../../../support/scripted-spdy-peer.ts";
import { type SpdyTransportStream, spdyTransportPeer } from "../../../support/spdy-transport-peer.ts";

const text = new TextEncoder();
const refuseStreams = () => RST.REFUSED_STREAM;

describe("SpdySession and spdy-transport 3.0.0, an independent implementation", () => {
  let server: net.Server;
  let ours: net.Socket;
  let theirs: net.Socket;

  beforeEach(async () => {
    server = net.createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const accepted = once(server, "connection");
    ours = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
    [theirs] = (await accepted) as [net.Socket];
    for (const socket of [ours, theirs]) socket.on("error", () => {});
  });

  afterEach(async () => {
    ours.destroy();
    theirs.destroy();
    server.close();
    await once(server, "close");
  });

  function session(role: "client" | "server", handler: Partial<SpdySessionHandler>): SpdySession {
    const created: SpdySession = new SpdySession(role, {
      send: (bytes) => void ours.write(bytes),
      onStream: refuseStreams,
      ...handler,
    });
    ours.on("data", (chunk) => created.receive(chunk));
    return created;
  }

  /** Collects a stream's text until the peer finishes it. */
  function read(
    open: (handler: { onData(part: Uint8Array, fin: boolean): void; onEnd(): void }) => void,
  ): Promise<string> {
    return new Promise((resolve, reject) => {
      const pieces: Uint8Array[] = [];
      open({
        onData(part, fin) {
          pieces.push(part);
          if (fin) resolve(Buffer.concat(pieces).toString());
        },
        onEnd: () => reject(new Error("ended without FIN")),
      });
    });
  }

  it("as client: 100 streams with headers of their own, half-closed and echoed", async () => {
    spdyTransportPeer(theirs, "server").on("stream", (stream) => {
      stream.respond(200, {});
      stream.on("data", (chunk) => stream.write(chunk));
      stream.on("end", () => stream.end(` ${stream.headers.requestid} ${stream.headers["x-long"]?.length}`));
    });
    const client = session("client", {});
    const echoes = Array.from({ length: 100 }, (_, index) =>
      read((handler) => {
        const stream = client.openStream(
          [
            ["requestID", String(index)],
            ["x-long", "y".repeat(index * 50)],
          ],
          handler,
        );
        stream.write(text.encode(`hello ${index}`));
        stream.finish();
      }),
    );
    expect(await Promise.all(echoes)).toEqual(
      Array.from({ length: 100 }, (_, index) => `hello ${index} ${index} ${index * 50}`),
    );
    expect(client.openStreamCount).toBe(0);
  });

  it("as server: 100 streams with headers of their own, half-closed and echoed", async () => {
    session("server", {
      onStream: (stream) => ({
        onData(part, fin) {
          stream.write(part);
          if (!fin) return;
          stream.write(
            text.encode(` ${stream.headers.get("requestid")} ${stream.headers.get("x-long")?.length}`),
          );
          stream.finish();
        },
        onEnd() {},
      }),
    });
    const client = spdyTransportPeer(theirs, "client");
    const echoes = Array.from({ length: 100 }, async (_, index) => {
      const headers = { requestid: String(index), "x-long": "y".repeat(index * 50 + 1) };
      const stream = client.request({ method: "POST", path: "/", host: "x", headers });
      stream.end(`hello ${index}`);
      const pieces: Buffer[] = [];
      stream.on("data", (piece: Buffer) => pieces.push(piece));
      await once(stream, "end");
      return Buffer.concat(pieces).toString();
    });
    expect(await Promise.all(echoes)).toEqual(
      Array.from({ length: 100 }, (_, index) => `hello ${index} ${index} ${index * 50 + 1}`),
    );
  });

  it("1 MiB each way: no window is ever waited for", async () => {
    spdyTransportPeer(theirs, "server").on("stream", (stream) => {
      stream.respond(200, {});
      stream.pipe(stream);
    });
    const client = session("client", {});
    const echo = await read((handler) => {
      const stream = client.openStream([["streamtype", "stdin"]], handler);
      for (let piece = 0; piece < 32; piece++)
        stream.write(text.encode(String(piece % 10).repeat(32 * 1024)));
      stream.finish();
    });
    expect(echo).toHaveLength(1024 * 1024);
    expect(echo).toBe(
      Array.from({ length: 32 }, (_, piece) => String(piece % 10).repeat(32 * 1024)).join(""),
    );
  });

  it("resets cross, both ways", async () => {
    const arrived: Promise<SpdyTransportStream> = new Promise((resolve) => {
      spdyTransportPeer(theirs, "server").on("stream", resolve);
    });
    const log = new StreamLog();
    let stream: SpdyStream | undefined;
    const reset = new Promise<void>((resolve) => {
      const client = session("client", {});
      stream = client.openStream([["streamtype", "error"]], {
        onData: (part, fin) => log.onData(part, fin),
        onEnd(end) {
          log.onEnd(end);
          resolve();
        },
      });
    });
    (await arrived).abort("REFUSED_STREAM");
    await reset;
    expect([log.events, stream?.isWritable]).toEqual([["reset 3"], false]);
  });

  it("pings are answered by each side", async () => {
    const theirSide = spdyTransportPeer(theirs, "server");
    const pong = new Promise<number>((resolve) => {
      session("client", { onPong: resolve }).ping();
    });
    expect(await pong).toBe(1);
    await new Promise<void>((resolve) => theirSide.ping(resolve));
  });

  it("GOAWAY ends the session", async () => {
    const theirSide = spdyTransportPeer(theirs, "server");
    const client = session("client", {});
    const log = new StreamLog();
    const stream = client.openStream([], log);
    const ended = once(ours, "data");
    theirSide.end();
    await ended;
    await expect.poll(() => client.isOver).toBe(true);
    expect([log.events, stream.isWritable]).toEqual([["session-ended"], false]);
  });
});
