import { readUint32, writeUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";

// One frame is one binary WebSocket message. Numbers are big-endian, offsets count bytes of one direction from 0.
//
//  0        1                 9                 17         21
// +--------+-----------------+-----------------+----------+------------
// | DATA 1 | offset (64)     | received (64)   | free (32)| payload ...
// | FIN  2 | offset (64)     | received (64)   | free (32)|
// | ACK  3 | received (64)   | free (32)       |
// | ABORT 4| code (8)        | reason, UTF-8, 123 bytes at most

const TYPE = { DATA: 1, FIN: 2, ACK: 3, ABORT: 4 } as const;
const TYPE_BYTES = 1;
const OFFSET_BYTES = 8;
const FREE_BYTES = 4;
const ACK_BYTES = TYPE_BYTES + OFFSET_BYTES + FREE_BYTES;
const DATA_HEADER_BYTES = ACK_BYTES + OFFSET_BYTES;
const MAX_REASON_BYTES = 123;
const MAX_ABORT_BYTES = TYPE_BYTES + 1 + MAX_REASON_BYTES;

/** The longest header that we write: DATA's. */
export const MAX_HEADER_BYTES: number = DATA_HEADER_BYTES;
/** The most payload we put in one DATA frame. We accept longer frames, as far as the window allows. */
export const MAX_DATA_BYTES: number = 64 * 1024;

/** Why a side ended the session by force. */
export const ABORT = { ENDED: 0, PROTOCOL_ERROR: 1, SHUTDOWN: 2 } as const;
export type AbortCode = (typeof ABORT)[keyof typeof ABORT];

interface ResumeFrameHandler {
  /**
   * A part of a DATA frame as soon as it arrives: a view of the pushed bytes, never empty, with its
   * own offset.
   */
  onData(offset: number, part: Uint8Array): void;
  onFin(offset: number): void;
  onAck(received: number, free: number): void;
  onAbort(code: number, reason: string): void;
}

/** Writes a DATA header and returns its length. */
export function writeDataHeader(target: Uint8Array, offset: number, received: number, free: number): number {
  return writeLongHeader(target, TYPE.DATA, offset, received, free);
}

export function writeFin(target: Uint8Array, offset: number, received: number, free: number): number {
  return writeLongHeader(target, TYPE.FIN, offset, received, free);
}

export function writeAck(target: Uint8Array, received: number, free: number): number {
  target[0] = TYPE.ACK;
  writeOffset(target, TYPE_BYTES, received);
  writeUint32(target, TYPE_BYTES + OFFSET_BYTES, free);
  return ACK_BYTES;
}

export function encodeAbort(code: AbortCode, reason: string): Uint8Array {
  const frame = new Uint8Array(MAX_ABORT_BYTES);
  frame[0] = TYPE.ABORT;
  frame[1] = code;
  const { written } = new TextEncoder().encodeInto(reason, frame.subarray(2));
  return frame.subarray(0, 2 + written);
}

function writeLongHeader(
  target: Uint8Array,
  type: number,
  offset: number,
  received: number,
  free: number,
): number {
  target[0] = type;
  writeOffset(target, TYPE_BYTES, offset);
  writeOffset(target, TYPE_BYTES + OFFSET_BYTES, received);
  writeUint32(target, TYPE_BYTES + 2 * OFFSET_BYTES, free);
  return DATA_HEADER_BYTES;
}

function writeOffset(target: Uint8Array, at: number, offset: number): void {
  writeUint32(target, at, Math.floor(offset / 0x1_0000_0000));
  writeUint32(target, at + 4, offset >>> 0);
}

/** Throws ProtocolError beyond 2^53 - 1, which no session reaches. */
function readOffset(bytes: Uint8Array, at: number): number {
  const offset = readUint32(bytes, at) * 0x1_0000_0000 + readUint32(bytes, at + 4);
  if (offset <= Number.MAX_SAFE_INTEGER) return offset;
  throw new ProtocolError("malformed-frame", "an offset is beyond 2^53");
}

/**
 * Turns message parts into frames, and assembles only headers, 125 bytes at most. `reset` forgets a
 * message that a lost connection truncated; its bytes up to there have been delivered and count.
 */
export class ResumeFrameDecoder {
  readonly #handler: ResumeFrameHandler;
  readonly #header = new Uint8Array(MAX_ABORT_BYTES);
  #headerBytes = 0;
  #offset = 0;
  #isInPayload = false;

  constructor(handler: ResumeFrameHandler) {
    this.#handler = handler;
  }

  reset(): void {
    this.#headerBytes = 0;
    this.#isInPayload = false;
  }

  /**
   * Throws ProtocolError for an unknown type, a frame that is too short or too long, or an offset
   * beyond 2^53.
   */
  push(part: Uint8Array, isFirst: boolean, isLast: boolean): void {
    if (isFirst) this.reset();
    const payload = this.#isInPayload ? part : this.#readHeader(part);
    if (payload.byteLength > 0) {
      const offset = this.#offset;
      this.#offset += payload.byteLength;
      if (this.#offset > Number.MAX_SAFE_INTEGER) throw malformed("an offset is beyond 2^53");
      this.#handler.onData(offset, payload);
    }
    if (isLast) this.#end();
  }

  /** Returns the rest of the part, which is payload. */
  #readHeader(part: Uint8Array): Uint8Array {
    const header = this.#header;
    let at = 0;
    while (at < part.byteLength && this.#headerBytes < headerBytesOf(header, this.#headerBytes)) {
      header[this.#headerBytes++] = part[at++] as number;
    }
    const isWhole = this.#headerBytes > 0 && this.#headerBytes === headerBytesOf(header, this.#headerBytes);
    const rest = part.subarray(at);
    if (!isWhole || header[0] !== TYPE.DATA) {
      if (rest.byteLength > 0) throw malformed("a frame is too long");
      return rest;
    }
    this.#isInPayload = true;
    this.#offset = readOffset(header, TYPE_BYTES);
    this.#acknowledge(TYPE_BYTES + OFFSET_BYTES);
    return rest;
  }

  #end(): void {
    const header = this.#header;
    const type = header[0];
    if (this.#headerBytes === 0) throw malformed("a frame is empty");
    if (type === TYPE.ABORT) {
      if (this.#headerBytes < 2) throw malformed("a frame is too short");
      const reason = new TextDecoder().decode(header.subarray(2, this.#headerBytes));
      this.#handler.onAbort(header[1] as number, reason);
      return;
    }
    if (this.#headerBytes < headerBytesOf(header, this.#headerBytes)) throw malformed("a frame is too short");
    if (type === TYPE.ACK) {
      this.#acknowledge(TYPE_BYTES);
    } else if (type === TYPE.FIN) {
      this.#acknowledge(TYPE_BYTES + OFFSET_BYTES);
      this.#handler.onFin(readOffset(header, TYPE_BYTES));
    }
  }

  #acknowledge(at: number): void {
    this.#handler.onAck(readOffset(this.#header, at), readUint32(this.#header, at + OFFSET_BYTES));
  }
}

/** The header's length, judged by its first `known` bytes; an ABORT header extends to the message's end. */
function headerBytesOf(header: Uint8Array, known: number): number {
  if (known === 0) return TYPE_BYTES;
  switch (header[0]) {
    case TYPE.DATA:
    case TYPE.FIN:
      return DATA_HEADER_BYTES;
    case TYPE.ACK:
      return ACK_BYTES;
    case TYPE.ABORT:
      return MAX_ABORT_BYTES;
    default:
      throw malformed(`there is no frame type ${header[0]}`);
  }
}

function malformed(message: string): ProtocolError {
  return new ProtocolError("malformed-frame", message);
}
