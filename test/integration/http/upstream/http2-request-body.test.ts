import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { Readable, Writable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import type { HttpDownstream } from "../../../../packages/client/src/http/downstream/http-downstream.ts";
import { Http2RequestBody } from "../../../../src/http/upstream/http2-request-body.ts";

const PREFACE_BYTES = 24;
const HEADER_BYTES = 9;

let server: Server | undefined;
let session: ClientHttp2Session | undefined;
afterEach(() => {
  session?.destroy();
  server?.close();
});

/** The lengths of the DATA frames that a backend gets of this body, up to the frame that ends it. */
async function framesOf(body: Readable, then: () => void): Promise<number[]> {
  const frames: number[] = [];
  const ended = new Promise<void>((resolve) => {
    server = createServer((socket) => {
      // SETTINGS without a setting.
      socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
      socket.on("error", () => {});
      let received = Buffer.alloc(0);
      let at = PREFACE_BYTES;
      socket.on("data", (chunk) => {
        received = Buffer.concat([received, chunk]);
        while (received.length >= at + HEADER_BYTES) {
          const [length, type, flags] = [received.readUIntBE(at, 3), received[at + 3], received[at + 4] ?? 0];
          if (received.length < at + HEADER_BYTES + length) return;
          at += HEADER_BYTES + length;
          if (type !== 0) continue;
          frames.push(length);
          if ((flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0) resolve();
        }
      });
    }).listen(0, "127.0.0.1");
  });
  await once(server as Server, "listening");
  session = connect(`http://127.0.0.1:${((server as Server).address() as AddressInfo).port}`);
  // Before, streams only queue.
  await once(session, "remoteSettings");
  const stream = session.request({ ":method": "POST" }, { endStream: false });
  stream.on("error", () => {});
  const downstream = {
    body,
    get isBodyComplete() {
      return body.readableEnded;
    },
  } as HttpDownstream;
  new Http2RequestBody(downstream).sendOn(stream);
  then();
  await ended;
  return frames;
}

it("a body that arrives with its end leaves as one frame, as a gRPC call needs", async () => {
  const body = new Readable({ read() {} });
  const frames = await framesOf(body, () =>
    // As when it flows already.
    setImmediate(() => {
      body.push("hello");
      body.push(null);
    }),
  );
  expect(frames).toEqual([5]);
});

it("a part leaves before the next one comes", async () => {
  const body = new Readable({ read() {} });
  const frames = await framesOf(body, () => {
    body.push("first");
    setImmediate(() => setImmediate(() => body.push(null)));
  });
  expect(frames).toEqual([5, 0]);
});

it("the parts of a larger body arrive whole", async () => {
  const parts = Array.from({ length: 6 }, () => Buffer.alloc(10_000, "x"));
  const frames = await framesOf(Readable.from(parts), () => {});
  expect(frames.reduce((sum, length) => sum + length, 0)).toBe(60_000);
});

it("a body of single bytes is kept in one memory, and is resent whole and unchanged", async () => {
  const attempt = () => {
    const parts: Buffer[] = [];
    const write = (part: Buffer, _: string, done: () => void) => {
      parts.push(part);
      done();
    };
    return { stream: new Writable({ write }) as ClientHttp2Stream, parts };
  };
  const bytes = Buffer.from(Array.from({ length: 60_000 }, (_, index) => index % 251));
  const body = new Readable({ read() {} });
  const kept = new Http2RequestBody({ body, isBodyComplete: false } as HttpDownstream);
  const [first, second] = [attempt(), attempt()];
  kept.sendOn(first.stream);
  for (let at = 0; at < bytes.length; at++) body.emit("data", bytes.subarray(at, at + 1));
  await turn();
  expect(Buffer.concat(first.parts)).toEqual(bytes);
  kept.sendOn(second.stream);
  body.emit("data", Buffer.from("end"));
  await turn();
  expect(second.parts.map(({ length }) => length)).toEqual([60_000, 3]);
  expect(Buffer.concat(second.parts)).toEqual(Buffer.concat([bytes, Buffer.from("end")]));
});
