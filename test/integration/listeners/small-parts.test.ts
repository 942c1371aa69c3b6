import { expect, it } from "vitest";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FLAG, FRAME, openFrameClient } from "../../support/frame-peer.ts";
import { acceptUntilEnd } from "../../support/http/loopback.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";

const MAX_UNREAD_PARTS = fixedBound("src/listeners/small-parts.ts", "MAX_UNREAD_PARTS");

const PARTS_A_TURN = fixedBound("src/listeners/small-parts.ts", "PARTS_A_TURN");

const POST = { ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "a" };
/** As much as one read of a socket brings, in frames of one byte. */
const PARTS_OF_A_READ = (64 * 1024) / 10;

async function serve(onRequest: (request: Http2Request) => void): Promise<number> {
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest, onConnect: () => {} },
    { takingMs: defaultTimeouts.streamIdleMs, headMs: defaultTimeouts.handshakeMs },
  );
  return acceptUntilEnd((socket) => connections.accept(socket));
}

const partsOf = (count: number, streamId = 1): Buffer =>
  Buffer.concat(new Array<Buffer>(count).fill(frameOf(FRAME.data, 0, streamId, Buffer.from("a"))));

it("small frames of one connection are read in many turns, beside which others are served", async () => {
  const COUNT = 150_000;
  let parts = 0;
  let partsOfTurn = 0;
  let most = 0;
  const port = await serve(({ stream, pseudo }) => {
    if (pseudo[":method"] === "GET") {
      stream.respond({ ":status": 200 });
      stream.end("done");
      return;
    }
    stream.on("data", () => {
      parts += 1;
      if (partsOfTurn++ === 0)
        setImmediate(() => {
          most = Math.max(most, partsOfTurn);
          partsOfTurn = 0;
        });
    });
  });
  const client = await openFrameClient(port);
  client.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(POST));
  await eventually("its SETTINGS", () => client.has(FRAME.settings, 0));
  client.socket.write(partsOf(COUNT));
  const other = await connectHttp2(`http://127.0.0.1:${port}`);
  expect((await ask(other, "/")).body).toBe("done");
  await eventually(
    () => `all parts: ${parts}`,
    () => parts === COUNT,
    { timeoutMs: 20_000 },
  );
  expect(most).toBeGreaterThanOrEqual(PARTS_A_TURN);
  expect(most).toBeLessThan(2 * PARTS_OF_A_READ);
  other.destroy();
});

it("a connection whose small frames are not read is ended past a bound, and one whose are is not", async () => {
  const port = await serve(({ stream, pseudo }) => {
    if (pseudo[":path"] !== "/unread") stream.resume();
  });
  const client = await openFrameClient(port);
  client.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(POST));
  client.socket.write(partsOf(2 * MAX_UNREAD_PARTS));
  const perStream = 32_000;
  const streams = [3, 5, 7];
  const unread = headerBlockOf({ ...POST, ":path": "/unread" });
  for (const id of streams.slice(0, 2)) {
    client.send(FRAME.headers, FLAG.endHeaders, id, unread);
    client.socket.write(partsOf(perStream, id));
  }
  client.send(FRAME.ping, 0, 0, Buffer.alloc(8));
  await eventually("PING", () => client.has(FRAME.ping, 0), { timeoutMs: 20_000 });
  client.send(FRAME.headers, FLAG.endHeaders, 7, unread);
  client.socket.write(partsOf(perStream, 7));
  await eventually("GOAWAY", () => client.has(FRAME.goAway, 0));
  const [end] = client.frames.filter(({ type }) => type === FRAME.goAway);
  expect(end?.payload.readUInt32BE(4)).toBe(11);
});
