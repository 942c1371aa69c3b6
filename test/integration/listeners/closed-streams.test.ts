import { expect, it } from "vitest";
import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import { Http2Downstream } from "../../../src/http/downstream/http2-downstream.ts";
import { answerAndClose } from "../../../src/listeners/answer.ts";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, openFrameClient } from "../../support/frame-peer.ts";
import { acceptUntilEnd } from "../../support/http/loopback.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";

const BODY = Buffer.from("not found\n");

const WAYS: readonly (readonly [string, (request: Http2Request) => void])[] = [
  [
    "an upgrade that is refused",
    ({ stream }) =>
      answerAndClose(stream, 404, [], BODY, { clock: new SessionClock(), lingerTimes: defaultTimeouts }),
  ],
  [
    "an answer before the end of the body",
    ({ stream, pseudo, rawHeaders }) => {
      const downstream = new Http2Downstream(stream, pseudo, rawHeaders);
      downstream.respondWhole(404, "Not Found", [], [BODY], []);
      downstream.discardBody(1);
    },
  ],
];

// Without the RST_STREAM nghttp2 asks node:http2 for the stream's bytes for ever, in a loop that
// nothing ends, as soon as the client opens the window.
it.each(
  WAYS,
)("%s is reset when its stream is destroyed before the client takes it", async (_what, answer) => {
  const requests: Http2Request[] = [];
  const onRequest = (request: Http2Request): void => {
    requests.push(request);
    answer(request);
  };
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest, onConnect: onRequest },
    { takingMs: defaultTimeouts.streamIdleMs, headMs: defaultTimeouts.handshakeMs },
  );
  const client = await openFrameClient(await acceptUntilEnd((socket) => connections.accept(socket)));
  // SETTINGS_INITIAL_WINDOW_SIZE of 0.
  client.send(FRAME.settings, 0, 0, Buffer.of(0, 4, 0, 0, 0, 0));
  const head = { ":method": "POST", ":scheme": "http", ":path": "/", ":authority": "a" };
  client.send(FRAME.headers, FLAG.endHeaders, 1, headerBlockOf(head));
  await eventually("the answer's head", () => client.has(FRAME.headers, 1));
  // What is behind it comes after the time of the body.
  client.send(FRAME.ping, 0, 0, Buffer.alloc(8));
  await eventually("PING", () => client.has(FRAME.ping, 0));
  await new Promise((resolve) => setTimeout(resolve, 5));
  requests[0]?.stream.destroy(new Error("the exchange was cut short"));
  await eventually("the reset", () => client.endsOf(1).some((end) => end.startsWith("RST_STREAM")));
  expect(client.bodyOf(1)).toHaveLength(0);
});
