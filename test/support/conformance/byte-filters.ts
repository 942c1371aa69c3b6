import { OPCODE } from "../../../protocols/websocket/index.ts";

export type Send = (part: Uint8Array) => void;

/** Changes the bytes in one direction. */
export interface ByteFilter {
  push(chunk: Buffer, send: Send): void;
  /** The sender has ended. */
  end?(send: Send): void;
}

export interface WebSocketFrame {
  readonly fin: boolean;
  readonly opcode: number;
  /** Unmasked. */
  readonly payload: Buffer;
}

type FrameMap = (frame: WebSocketFrame) => readonly WebSocketFrame[];

/**
 * Maps whole frames of a WebSocket to others. `isMasked`: the frames are a client's. `atEnd`: what
 * remains to be sent.
 */
export function webSocketFrames(
  isMasked: boolean,
  map: FrameMap,
  atEnd: () => readonly WebSocketFrame[] = () => [],
): ByteFilter {
  let waiting: Buffer = Buffer.alloc(0);
  const sendAll = (frames: readonly WebSocketFrame[], send: Send): void => {
    for (const frame of frames) send(encodeFrame(frame, isMasked));
  };
  return {
    push(chunk, send) {
      waiting = waiting.byteLength === 0 ? chunk : Buffer.concat([waiting, chunk]);
      for (;;) {
        const read = readFrame(waiting);
        if (read === undefined) return;
        waiting = waiting.subarray(read.byteLength);
        sendAll(map(read.frame), send);
      }
    },
    end: (send) => sendAll(atEnd(), send),
  };
}

function readFrame(bytes: Buffer): { frame: WebSocketFrame; byteLength: number } | undefined {
  if (bytes.byteLength < 2) return undefined;
  const [first = 0, second = 0] = bytes;
  const short = second & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const isMasked = (second & 0x80) !== 0;
  const start = 2 + lengthBytes + (isMasked ? 4 : 0);
  if (bytes.byteLength < start) return undefined;
  const length =
    lengthBytes === 2 ? bytes.readUInt16BE(2) : lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.byteLength < start + length) return undefined;
  const payload = Buffer.from(bytes.subarray(start, start + length));
  if (isMasked) xor(payload, bytes.subarray(start - 4, start));
  return { frame: { fin: (first & 0x80) !== 0, opcode: first & 0x0f, payload }, byteLength: start + length };
}

export function encodeFrame({ fin, opcode, payload }: WebSocketFrame, isMasked: boolean): Buffer {
  const { byteLength } = payload;
  const mark = isMasked ? 0x80 : 0;
  const first = (fin ? 0x80 : 0) | opcode;
  const header =
    byteLength < 126
      ? Buffer.of(first, mark | byteLength)
      : byteLength <= 0xffff
        ? Buffer.of(first, mark | 126, byteLength >> 8, byteLength & 0xff)
        : Buffer.concat([Buffer.of(first, mark | 127), uint64(byteLength)]);
  if (!isMasked) return Buffer.concat([header, payload]);
  const key = Buffer.from([1, 2, 3, 4]);
  const masked = Buffer.from(payload);
  xor(masked, key);
  return Buffer.concat([header, key, masked]);
}

function xor(payload: Buffer, key: Buffer): void {
  for (let at = 0; at < payload.byteLength; at++) payload[at] = (payload[at] ?? 0) ^ (key[at & 3] ?? 0);
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** Maps messages of one channel to others, and passes everything else on. */
export function channelMessages(
  isMasked: boolean,
  channel: number,
  map: (payload: Buffer, frame: WebSocketFrame) => readonly WebSocketFrame[],
  atEnd?: () => readonly WebSocketFrame[],
): ByteFilter {
  return webSocketFrames(
    isMasked,
    (frame) =>
      frame.opcode === OPCODE.BINARY && frame.payload[0] === channel
        ? map(frame.payload.subarray(1), frame)
        : [frame],
    atEnd,
  );
}

export function message(channel: number, payload: Uint8Array): WebSocketFrame {
  return { fin: true, opcode: OPCODE.BINARY, payload: Buffer.concat([Buffer.of(channel), payload]) };
}

const SPDY_HEADER_BYTES = 8;

/** Maps whole SPDY/3.1 frames, headers included, to others. */
export function spdyFrames(map: (frame: Buffer) => readonly Buffer[]): ByteFilter {
  let waiting: Buffer = Buffer.alloc(0);
  return {
    push(chunk, send) {
      waiting = waiting.byteLength === 0 ? chunk : Buffer.concat([waiting, chunk]);
      while (waiting.byteLength >= SPDY_HEADER_BYTES) {
        const end = SPDY_HEADER_BYTES + waiting.readUIntBE(5, 3);
        if (waiting.byteLength < end) return;
        const frame = Buffer.from(waiting.subarray(0, end));
        waiting = waiting.subarray(end);
        for (const part of map(frame)) send(part);
      }
    },
  };
}
