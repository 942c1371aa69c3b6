import { encodeSettings } from "../../../protocols/http2/frame-encoder.ts";
import {
  ClientConnection,
  encodeFrame,
  encodeHeaderBlock,
  encodeHeaders,
  FRAME,
  Http2Error,
} from "../../../protocols/http2/index.ts";
import { FLAGS } from "../../../protocols/http2/limits.ts";

const POST = encodeHeaderBlock([
  [":method", "POST"],
  [":path", "/"],
]);
const BODY = Buffer.alloc(100, "b");
const block = encodeHeaderBlock([
  [":status", "200"],
  ["content-type", "text/plain"],
]);
const trailers = encodeHeaderBlock([["grpc-status", "0"]]);

/** Frames of a server, and a complete conversation of them. */
export const http2Frames: readonly Uint8Array[] = [
  encodeSettings([]),
  encodeSettings([[4, 10]]),
  encodeFrame(FRAME.SETTINGS, FLAGS.ACK, 0, Buffer.alloc(0)),
  encodeHeaders(1, block, false),
  encodeHeaders(3, block, true),
  encodeFrame(FRAME.HEADERS, 0, 1, block.subarray(0, 3)),
  encodeFrame(FRAME.CONTINUATION, FLAGS.END_HEADERS, 1, block.subarray(3)),
  encodeFrame(FRAME.DATA, 0, 1, Buffer.from("abc")),
  encodeFrame(FRAME.DATA, FLAGS.PADDED | FLAGS.END_STREAM, 1, Buffer.from("\x02abc\0\0")),
  encodeHeaders(1, trailers, true),
  encodeFrame(FRAME.WINDOW_UPDATE, 0, 0, Buffer.of(0, 0, 1, 0)),
  encodeFrame(FRAME.WINDOW_UPDATE, 0, 1, Buffer.of(0, 0, 0, 9)),
  encodeFrame(FRAME.PING, 0, 0, Buffer.from("pingpong")),
  encodeFrame(FRAME.RST_STREAM, 0, 1, Buffer.of(0, 0, 0, 7)),
  encodeFrame(FRAME.GOAWAY, 0, 0, Buffer.from("\0\0\0\x01\0\0\0\0bye")),
  encodeFrame(FRAME.PRIORITY, 0, 3, Buffer.alloc(5)),
];
const [SETTINGS, , ACK, HEAD] = http2Frames as [Uint8Array, Uint8Array, Uint8Array, Uint8Array];
export const http2Conversation: Buffer = Buffer.concat([SETTINGS, ACK, HEAD, ...http2Frames.slice(7)]);

/**
 * The events and frames of a client that sends one request, then another, if a server's bytes
 * arrive in these parts.
 */
export function http2Events(parts: readonly Buffer[]): unknown {
  const events: unknown[] = [];
  const sent: Buffer[] = [];
  let data = "";
  const say = (...event: unknown[]): void => {
    if (data !== "") events.push(["data", data]);
    data = "";
    if (event.length > 0) events.push(event);
  };
  const limits = { maxFrameBytes: 4_096, maxHeaderListBytes: 2_048, maxContinuationFrames: 4 };
  const connection = new ClientConnection(
    {
      onSettings: () => say("settings", connection.maxConcurrentStreams),
      onHead: (head) => say("head", head),
      onData: (part) => {
        data += Buffer.from(part).toString("latin1");
      },
      onTrailers: (fields) => say("trailers", fields),
      onEnd: (isByData) => again("end", isByData),
      onReset: (code) => again("reset", code),
      onGoaway: (last, code, debug) => say("goaway", last, code, Buffer.from(debug).toString("latin1")),
    },
    (bytes) => void sent.push(Buffer.from(bytes)),
    limits,
  );
  const again = (...event: unknown[]): void => {
    say(...event);
    if (connection.nextStreamId < 5)
      connection.request(encodeHeaders(connection.nextStreamId, POST, false), BODY);
  };
  connection.request(encodeHeaders(connection.nextStreamId, POST, false), BODY);
  try {
    for (const part of parts) connection.push(part);
    events.push(["between frames", connection.isBetweenFrames]);
  } catch (error) {
    if (!(error instanceof Http2Error)) throw error;
    say("refused", error.fault, error.code, error.message);
  }
  say();
  return { events, sent: Buffer.concat(sent).toString("latin1") };
}
