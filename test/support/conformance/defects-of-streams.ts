import { CHANNEL } from "../../../protocols/remotecommand/index.ts";
import { OPCODE } from "../../../protocols/websocket/index.ts";
import { headerOf, type MessageHead, type ProxyDefect } from "./broken-proxy.ts";
import {
  type ByteFilter,
  channelMessages,
  encodeFrame,
  message,
  spdyFrames,
  type WebSocketFrame,
  webSocketFrames,
} from "./byte-filters.ts";

const PASS: ByteFilter = { push: (chunk, send) => send(chunk) };
const V5 = "v5.channel.k8s.io";
const SUCCESS = Buffer.from('{"metadata":{},"status":"Success"}');
const isFrom = (frame: WebSocketFrame, channel: number): boolean =>
  frame.opcode === OPCODE.BINARY && frame.payload[0] === channel;

/** A filter for v5 sessions only; others pass unchanged. */
const onV5 =
  (filter: () => ByteFilter) =>
  (request: MessageHead): ByteFilter =>
    headerOf(request, "sec-websocket-protocol") === V5 ? filter() : PASS;

const fromServer = (map: (frame: WebSocketFrame) => readonly WebSocketFrame[]) =>
  onV5(() => webSocketFrames(false, map));
const fromClient = (map: (frame: WebSocketFrame) => readonly WebSocketFrame[]) =>
  onV5(() => webSocketFrames(true, map));

/** Maps every n-th whole message of stdout. */
const everyStdout = (n: number, map: (payload: Buffer) => readonly WebSocketFrame[]) =>
  onV5(() => {
    let count = 0;
    return channelMessages(false, CHANNEL.STDOUT, (payload, frame) =>
      ++count % n === 0 ? map(payload) : [frame],
    );
  });

let sessions = 0;

export const streamDefects: readonly ProxyDefect[] = [
  {
    id: "merges-stderr",
    what: "sends stderr on the channel of stdout",
    namedBy: ["exec/stderr-separate/websocket-v5"],
    downstream: onV5(() =>
      channelMessages(false, CHANNEL.STDERR, (payload) => [message(CHANNEL.STDOUT, payload)]),
    ),
  },
  {
    id: "swallows-status",
    what: "drops what arrives on the error channel",
    namedBy: ["exec/stdout/websocket-v5", "exec/exit-codes/websocket-v5"],
    downstream: onV5(() => channelMessages(false, CHANNEL.ERROR, () => [])),
  },
  {
    id: "reports-success",
    what: "reports success whatever the status was",
    namedBy: ["exec/exit-codes/websocket-v5", "errors/missing-command/websocket-v5"],
    downstream: onV5(() => channelMessages(false, CHANNEL.ERROR, () => [message(CHANNEL.ERROR, SUCCESS)])),
  },
  {
    id: "no-half-close",
    what: "drops the signal that ends stdin",
    namedBy: ["exec/stdin-half-close/websocket-v5", "exec/empty/websocket-v5"],
    upstream: fromClient((frame) => (isFrom(frame, CHANNEL.CLOSE) ? [] : [frame])),
  },
  {
    id: "buffers-until-close",
    what: "holds output back until the session has ended",
    namedBy: ["exec/interactive/websocket-v5"],
    downstream: onV5(() => {
      const held: Buffer[] = [];
      return { push: (chunk) => void held.push(chunk), end: (send) => send(Buffer.concat(held)) };
    }),
  },
  {
    id: "buffers-requests",
    what: "holds input back until it has 4 KiB",
    namedBy: ["exec/interactive/websocket-v5"],
    upstream: onV5(() => {
      let held: Buffer[] = [];
      let byteLength = 0;
      return {
        push: (chunk, send) => {
          held.push(chunk);
          byteLength += chunk.byteLength;
          if (byteLength < 4_096) return;
          send(Buffer.concat(held));
          held = [];
          byteLength = 0;
        },
      };
    }),
  },
  {
    id: "masks-frames",
    what: "sends masked frames to the client",
    namedBy: ["framing/server-messages"],
    downstream: onV5(() => {
      const inner = webSocketFrames(false, (frame) => [frame]);
      return {
        push: (chunk, send) =>
          inner.push(chunk, (part) => {
            const [first = 0] = part;
            const short = (part[1] ?? 0) & 0x7f;
            const start = short === 126 ? 4 : short === 127 ? 10 : 2;
            const payload = Buffer.from(part.subarray(start));
            send(encodeFrame({ fin: (first & 0x80) !== 0, opcode: first & 0x0f, payload }, true));
          }),
      };
    }),
  },
  {
    id: "splits-messages",
    what: "cuts messages into smaller ones, of which only the first has a channel",
    namedBy: ["framing/server-messages"],
    downstream: fromServer((frame) =>
      frame.payload.byteLength <= 1_000
        ? [frame]
        : [
            { ...frame, payload: frame.payload.subarray(0, 1_000) },
            { ...frame, payload: frame.payload.subarray(1_000) },
          ],
    ),
  },
  {
    id: "merges-messages",
    what: "joins two messages into one",
    namedBy: ["framing/server-messages"],
    downstream: onV5(() => {
      let held: WebSocketFrame | undefined;
      return webSocketFrames(false, (frame) => {
        if (isFrom(frame, CHANNEL.STDOUT) && held === undefined && frame.payload.byteLength > 1) {
          held = frame;
          return [];
        }
        const before = held;
        held = undefined;
        if (before === undefined) return [frame];
        if (!isFrom(frame, CHANNEL.STDOUT)) return [before, frame];
        return [{ ...frame, payload: Buffer.concat([before.payload, frame.payload]) }];
      });
    }),
  },
  {
    id: "sends-text",
    what: "turns binary messages into text",
    namedBy: ["framing/server-messages"],
    downstream: fromServer((frame) => [
      frame.opcode === OPCODE.BINARY ? { ...frame, opcode: OPCODE.TEXT } : frame,
    ]),
  },
  {
    id: "sends-empty-messages",
    what: "sends an empty message in between",
    namedBy: ["framing/server-messages"],
    downstream: everyStdout(3, (payload) => [
      { fin: true, opcode: OPCODE.BINARY, payload: Buffer.alloc(0) },
      message(CHANNEL.STDOUT, payload),
    ]),
  },
  {
    id: "limits-messages",
    what: "drops messages of more than 64 KiB",
    namedBy: ["framing/large-message"],
    upstream: fromClient((frame) => (frame.payload.byteLength > 64 * 1024 ? [] : [frame])),
  },
  {
    id: "loses-small-messages",
    what: "loses one of many small messages",
    namedBy: ["framing/small-messages"],
    upstream: onV5(() => {
      let count = 0;
      return webSocketFrames(true, (frame) =>
        isFrom(frame, CHANNEL.STDIN) && ++count === 500 ? [] : [frame],
      );
    }),
  },
  {
    id: "drops-pings",
    what: "drops the client's PINGs",
    namedBy: ["heartbeat/websocket-pong", "heartbeat/idle/websocket-v5"],
    upstream: fromClient((frame) => (frame.opcode === OPCODE.PING ? [] : [frame])),
  },
  {
    id: "drops-pongs",
    what: "drops the server's PONGs",
    namedBy: ["heartbeat/websocket-pong", "heartbeat/idle/websocket-v5"],
    downstream: fromServer((frame) => (frame.opcode === OPCODE.PONG ? [] : [frame])),
  },
  {
    id: "empties-pongs",
    what: "answers PINGs without their payload",
    namedBy: ["heartbeat/websocket-pong"],
    downstream: fromServer((frame) => [
      frame.opcode === OPCODE.PONG ? { ...frame, payload: Buffer.alloc(0) } : frame,
    ]),
  },
  {
    id: "wrong-close-code",
    what: "closes with 1001 instead of 1000",
    namedBy: ["closing/proper-end/websocket-v5"],
    downstream: fromServer((frame) => [
      frame.opcode === OPCODE.CLOSE ? { ...frame, payload: Buffer.from([0x03, 0xe9]) } : frame,
    ]),
  },
  {
    id: "no-close-frame",
    what: "closes the connection without a Close frame",
    namedBy: ["closing/proper-end/websocket-v5"],
    downstream: fromServer((frame) => (frame.opcode === OPCODE.CLOSE ? [] : [frame])),
  },
  {
    id: "never-closes",
    what: "keeps the client's connection when the server's has ended",
    namedBy: ["closing/proper-end/websocket-v5", "closing/client-close"],
    downstream: fromServer((frame) => (frame.opcode === OPCODE.CLOSE ? [] : [frame])),
    keepsClient: true,
  },
  {
    id: "drops-last-output",
    what: "drops the last message before the status",
    namedBy: ["closing/last-output/websocket-v5"],
    downstream: onV5(() => {
      let held: WebSocketFrame | undefined;
      return webSocketFrames(false, (frame) => {
        if (isFrom(frame, CHANNEL.STDOUT)) {
          const before = held;
          held = frame;
          return before === undefined ? [] : [before];
        }
        if (!isFrom(frame, CHANNEL.ERROR)) return [frame];
        held = undefined;
        return [frame];
      });
    }),
  },
  {
    id: "takes-bytes-for-text",
    what: "reads output as UTF-8 and writes it again",
    namedBy: ["exec/binary/websocket-v5"],
    downstream: onV5(() =>
      channelMessages(false, CHANNEL.STDOUT, (payload) => [
        message(CHANNEL.STDOUT, Buffer.from(payload.toString("utf8"))),
      ]),
    ),
  },
  {
    id: "changes-line-ends",
    what: "writes CRLF for every LF",
    namedBy: ["exec/stdout/websocket-v5"],
    downstream: onV5(() =>
      channelMessages(false, CHANNEL.STDOUT, (payload) => [
        message(CHANNEL.STDOUT, Buffer.from(payload.toString("latin1").replaceAll("\n", "\r\n"), "latin1")),
      ]),
    ),
  },
  {
    id: "reorders",
    what: "swaps two messages of many",
    namedBy: ["exec/bulk-download/websocket-v5"],
    downstream: onV5(() => {
      let count = 0;
      let held: WebSocketFrame | undefined;
      return webSocketFrames(false, (frame) => {
        if (isFrom(frame, CHANNEL.STDOUT) && ++count === 10) {
          held = frame;
          return [];
        }
        const before = held;
        held = undefined;
        return before === undefined ? [frame] : [frame, before];
      });
    }),
  },
  {
    id: "duplicates",
    what: "sends a message twice",
    namedBy: ["exec/bulk-download/websocket-v5"],
    downstream: everyStdout(20, (payload) => [
      message(CHANNEL.STDOUT, payload),
      message(CHANNEL.STDOUT, payload),
    ]),
  },
  {
    id: "loses-a-message",
    what: "loses a message of many",
    namedBy: ["exec/bulk-download/websocket-v5"],
    downstream: everyStdout(20, () => []),
  },
  {
    id: "changes-a-byte",
    what: "changes one byte of many",
    namedBy: ["exec/bulk-echo/websocket-v5"],
    downstream: everyStdout(20, (payload) => {
      payload[0] = (payload[0] ?? 0) ^ 0x20;
      return [message(CHANNEL.STDOUT, payload)];
    }),
  },
  {
    id: "loses-resize",
    what: "drops the sizes of terminals",
    namedBy: ["exec/resize/websocket-v5"],
    upstream: fromClient((frame) => (isFrom(frame, CHANNEL.RESIZE) ? [] : [frame])),
  },
  {
    id: "loses-first-output",
    what: "loses the first output of every tenth session",
    namedBy: ["sessions/sequence/websocket-v5"],
    downstream: onV5(() => {
      if (++sessions % 10 !== 0) return PASS;
      let isFirst = true;
      return channelMessages(false, CHANNEL.STDOUT, (payload, frame) => {
        if (!isFirst || payload.byteLength === 0) return [frame];
        isFirst = false;
        return [];
      });
    }),
  },
];

const FIN = 0x01;

export const spdyDefects: readonly ProxyDefect[] = [
  {
    id: "drops-spdy-fin",
    what: "drops the ends of SPDY streams that the client sends",
    namedBy: ["exec/stdin-half-close/spdy", "port-forward/half-close/spdy-forward"],
    upstream: (request) =>
      headerOf(request, "upgrade") === "SPDY/3.1"
        ? spdyFrames((frame) => {
            const isData = ((frame[0] ?? 0) & 0x80) === 0;
            if (isData) frame[4] = (frame[4] ?? 0) & ~FIN;
            return [frame];
          })
        : PASS,
  },
  {
    id: "drops-spdy-pings",
    what: "drops SPDY PINGs",
    namedBy: ["heartbeat/spdy-ping"],
    upstream: (request) =>
      headerOf(request, "upgrade") === "SPDY/3.1"
        ? spdyFrames((frame) => (frame.readUInt32BE(0) === 0x80030006 ? [] : [frame]))
        : PASS,
  },
];

export const timeDefects: readonly ProxyDefect[] = [
  {
    id: "cuts-silence",
    what: "cuts connections after 40 s of silence",
    namedBy: [
      "idle/silent-60s/websocket-v5",
      "idle/silent-60s/spdy",
      "idle/silent-60s/tunnel",
      "idle/silent-60s/spdy-forward",
    ],
    idleMs: 400,
  },
  {
    id: "ignores-pings",
    what: "cuts connections after 40 s without data, whatever PINGs there are",
    namedBy: ["idle/pinged-60s/websocket-v5", "idle/pinged-60s/tunnel"],
    idleMs: 400,
    countsDataOnly: true,
  },
  {
    id: "limits-duration",
    what: "cuts connections 80 s after they began",
    namedBy: ["idle/pinged-120s/websocket-v5", "idle/pinged-120s/spdy"],
    maxDurationMs: 800,
  },
  {
    id: "one-connection",
    what: "carries one upgraded connection at a time",
    namedBy: ["sessions/parallel/websocket-v5", "sessions/parallel/spdy"],
    maxConnections: 1,
  },
  {
    id: "resets-at-end",
    what: "resets the client's connection as soon as the server's has ended",
    namedBy: ["slow-reader/steady/websocket-v5"],
    resetsAtEnd: true,
  },
  {
    id: "limits-buffer",
    what: "drops output beyond 64 KiB that the client has not taken",
    namedBy: ["slow-reader/stalled/websocket-v5", "slow-reader/stalled/spdy"],
    maxBufferedBytes: 64 * 1024,
  },
  {
    id: "shares-backpressure",
    what: "holds up all sessions while one client does not read",
    namedBy: ["backpressure/stalled-neighbour/websocket-v5", "backpressure/stalled-neighbour/spdy"],
    sharesBackpressure: true,
  },
  {
    id: "keeps-server",
    what: "keeps the server's connection when the client's has gone",
    namedBy: ["abrupt-end/client-gone/websocket-v5", "abrupt-end/client-gone/spdy"],
    keepsServer: true,
  },
  {
    id: "refuses-extended-connect",
    what: "allows WebSockets on HTTP/2 streams, and refuses them",
    namedBy: ["http2/extended-connect"],
    http2Status: 501,
  },
];
