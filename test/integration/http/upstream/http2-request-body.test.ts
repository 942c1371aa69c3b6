import { once } from "node:events";
import { type ClientHttp2Session, connect, constants } from "node:http2";
import { type AddressInfo, createServer, type Server } from "node:net";
import { Readable } from "node:stream";
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
