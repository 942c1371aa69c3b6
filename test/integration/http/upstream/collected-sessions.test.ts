import { once } from "node:events";
import type { ClientHttp2Session } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, onTestFinished } from "vitest";
import { Http2Upstream } from "../../../../src/http/upstream/http2-upstream.ts";
import { eventually } from "../../../support/eventually.ts";
import { FRAME, FramePeer, PREFACE } from "../../../support/frame-peer.ts";
import { frameOf, headerBlockOf } from "../../../support/http2-frames.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const HALF_A_HEAD = frameOf(
  FRAME.headers,
  0,
  1,
  headerBlockOf({ ":status": "200", "x-first": "1".repeat(100) }),
);
/** Node.js 20 goes on after it as if nothing had happened; others end the session themselves. */
const BAD_PING = frameOf(FRAME.ping, 0, 0, Buffer.alloc(7));

it("a session is collected after its streams", async () => {
  const { session } = await answeredBy(HALF_A_HEAD);
  const handle = new WeakRef(nativeHandleOf(session));
  session.destroy();
  collectGarbage();
  expect(handle.deref()).toBeDefined();
  await once(session, "close");
  await eventually("its collection", () => {
    collectGarbage();
    return handle.deref() === undefined;
  });
});

// Without this Node.js 20 aborts: "Assertion failed: (current_nghttp2_memory_) == (0)".
it("a collection next to the end of a broken session ends nothing else", async () => {
  const { session } = await answeredBy(Buffer.concat([HALF_A_HEAD, BAD_PING]));
  session.destroy();
  collectGarbage();
  expect(session.destroyed).toBe(true);
});

/** The session of a request whose backend wrote `answer`, once that has been read. */
async function answeredBy(answer: Buffer): Promise<{ readonly session: ClientHttp2Session }> {
  const upstream = new Http2Upstream({ host: "127.0.0.1", port: await startBackend(answer) }, 5_000);
  onTestFinished(() => upstream.close());
  const { session, stream } = await openStream(upstream);
  stream.on("error", () => {});
  const { socket } = session;
  await eventually("the answer", () => session.destroyed || (socket.bytesRead ?? 0) > answer.length);
  return { session };
}

async function startBackend(answer: Buffer): Promise<number> {
  const server = createServer((socket) => {
    const peer = new FramePeer(socket, PREFACE.length);
    peer.send(FRAME.settings, 0, 0);
    peer.onFrame = ({ type }) => {
      if (type === FRAME.headers) socket.write(answer);
    };
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

async function openStream(upstream: Http2Upstream) {
  const connection = await upstream.connection("192.0.2.1");
  const stream = connection.request({ ":path": "/" }, {});
  return { session: connection.session, stream };
}

function nativeHandleOf(session: object): WeakKey {
  const key = Object.getOwnPropertySymbols(session).find(({ description }) => description === "kHandle");
  return (session as Record<symbol, WeakKey>)[key as symbol] as WeakKey;
}
