import { setImmediate as turn } from "node:timers/promises";
import { encodePortPrefix, streamHeaders } from "../../protocols/portforward/index.ts";
import { CHANNEL, channelByte, encodeBase64 } from "../../protocols/remotecommand/index.ts";
import { SpdySession, type SpdyStream, type SpdyStreamHandler } from "../../protocols/spdy/index.ts";
import {
  applyMask,
  encodeClose,
  OPCODE,
  WebSocketFrameDecoder,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../protocols/websocket/index.ts";
import type { MemorySocket } from "./carried-session.ts";

const ZERO_DIGIT = 0x30;
const MASK_KEY = 0x1ad34c7f;
/** A peer's connection to its session: what it sends, and what it received. */
export interface Pipe {
  send(bytes: Uint8Array): void;
  take(): Uint8Array[];
  /** Codes of the Close frames that it received. */
  readonly closes: readonly number[];
  /** Ends the connection in its own framing, or silently. */
  close(): void;
}

export function plainPipe(socket: MemorySocket): Pipe {
  return {
    send: (bytes) => void socket.push(Buffer.from(bytes)),
    take: () => socket.sent.splice(0),
    closes: [],
    close: () => {},
  };
}

/** Messages of one frame each; a client's are masked. */
export function webSocketPipe(
  socket: MemorySocket,
  role: "client" | "server",
  opcode: number = OPCODE.BINARY,
): Pipe {
  const taken: Uint8Array[] = [];
  const closes: number[] = [];
  let message = Buffer.alloc(0);
  const decoder = new WebSocketFrameDecoder(role, {
    onMessage: (part, _isFirst, isLast) => {
      message = Buffer.concat([message, part]);
      if (isLast) taken.push(message);
      if (isLast) message = Buffer.alloc(0);
    },
    onPing: () => {},
    onPong: () => {},
    onClose: (code) => void closes.push(code),
  });
  const isMasked = role === "client";
  return {
    send: (bytes) => {
      const header = new Uint8Array(14);
      const payload = Buffer.from(bytes);
      const length = payload.byteLength;
      const headerBytes = isMasked
        ? writeMaskedFrameHeader(header, 0, opcode, length, true, MASK_KEY)
        : writeFrameHeader(header, 0, opcode, length, true);
      if (isMasked) applyMask(payload, MASK_KEY, 0);
      socket.push(Buffer.concat([header.subarray(0, headerBytes), payload]));
    },
    take: () => {
      for (const bytes of socket.sent.splice(0)) decoder.push(Buffer.from(bytes));
      return taken.splice(0);
    },
    closes,
    close: () => void socket.push(encodeClose(1000, "", isMasked ? MASK_KEY : undefined)),
  };
}

/** One end of a session, which sends what Kubernetes' peers send. */
export interface Peer {
  /** Sends input if it is the client, output if it is the node. */
  send(stream: string, text: string): void;
  /** Ends this stream, if the protocol can express that. */
  finish(stream: string): void;
  /** In a port-forward, the client opens a connection to this port. */
  open(port: number): void;
  leave(): void;
  /** Reads what was sent to it. */
  receive(): void;
  /** What it has read, by stream, and the streams that ended. */
  readonly received: Readonly<Record<string, string>>;
  readonly ended: readonly string[];
}

/** Both ends of SPDY: the client opens `streams`, or connections to ports. */
export function spdyPeer(pipe: Pipe, role: "client" | "server", streams: readonly string[] = []): Peer {
  const open = new Map<string, SpdyStream>();
  const received: Record<string, string> = {};
  const ended: string[] = [];
  const handlerOf = (type: string): SpdyStreamHandler => ({
    onData: (part, fin) => {
      received[type] = (received[type] ?? "") + Buffer.from(part).toString();
      if (fin) ended.push(type);
    },
    onEnd: ({ type: how }) => void (how === "reset" && ended.push(type)),
  });
  const session = new SpdySession(role, {
    send: (bytes) => pipe.send(bytes),
    onStream: (stream) => {
      const type = stream.headers.get("streamtype") ?? "";
      open.set(type, stream);
      return handlerOf(type);
    },
  });
  for (const type of streams) open.set(type, session.openStream([["streamtype", type]], handlerOf(type)));
  return {
    send: (stream, text) => open.get(stream)?.write(Buffer.from(text)),
    finish: (stream) => open.get(stream)?.finish(),
    open: (port) => {
      if (role === "server") return;
      for (const streamType of ["error", "data"] as const) {
        const stream = session.openStream(
          streamHeaders({ streamType, port, requestId: "0" }),
          handlerOf(streamType),
        );
        open.set(streamType, stream);
        if (streamType === "error") stream.finish();
      }
    },
    leave: () => {
      session.goAway();
      pipe.close();
    },
    receive: () => {
      for (const bytes of pipe.take()) session.receive(bytes);
    },
    received,
    ended,
  };
}

const COMMAND_CHANNELS: Readonly<Record<string, number>> = {
  stdin: CHANNEL.STDIN,
  stdout: CHANNEL.STDOUT,
  stderr: CHANNEL.STDERR,
  error: CHANNEL.ERROR,
  resize: CHANNEL.RESIZE,
};

/** Either end of WebSocket channels, of a command or of a legacy port-forward of one port. */
export function channelPeer(
  pipe: Pipe,
  { isBase64 = false, hasClose = false, isForward = false, isNode = false } = {},
): Peer {
  const received: Record<string, string> = {};
  const channels: Readonly<Record<string, number>> = isForward ? { data: 0, error: 1 } : COMMAND_CHANNELS;
  const names = Object.fromEntries(Object.entries(channels).map(([stream, channel]) => [channel, stream]));
  const message = (channel: number, payload: Uint8Array): void => {
    const body = isBase64 ? encodeBase64(payload) : payload;
    pipe.send(Buffer.concat([Buffer.of(channelByte(channel, { isBase64 })), body]));
  };
  return {
    send: (stream, text) => message(channels[stream] ?? 0, Buffer.from(text)),
    finish: () => {
      if (hasClose) message(CHANNEL.CLOSE, Buffer.of(CHANNEL.STDIN));
    },
    open: (port) => {
      if (isNode && isForward) for (const channel of [0, 1]) message(channel, encodePortPrefix(port));
    },
    leave: () => pipe.close(),
    receive: () => {
      for (const [channel = 0, ...payload] of pipe.take()) {
        const stream = names[isBase64 ? channel - ZERO_DIGIT : channel] ?? String(channel);
        const text = Buffer.from(payload);
        const decoded = isBase64 ? Buffer.from(text.toString(), "base64") : text;
        received[stream] = (received[stream] ?? "") + decoded.toString("latin1");
      }
    },
    received,
    ended: [],
  };
}

/** Runs until neither end has anything more to read. */
export async function settle(...peers: readonly Peer[]): Promise<void> {
  for (let round = 0; round < 3; round++) {
    await turn();
    for (const peer of peers) peer.receive();
  }
  await turn();
}
