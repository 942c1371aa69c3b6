import { ProtocolError } from "../protocol-error.ts";
import { decodeClosePayload } from "./close.ts";
import { MAX_CONTROL_PAYLOAD_BYTES, MAX_FRAME_HEADER_BYTES, OPCODE } from "./constants.ts";
import { defaultWebSocketLimits, type WebSocketLimits } from "./limits.ts";
import { applyMask } from "./mask.ts";

/** Our side of the connection: a server expects masked frames, a client unmasked ones. */
export type WebSocketRole = "server" | "client";

export interface WebSocketFrameHandler {
  /**
   * Payload of a data message as it arrives, unmasked in place: a subarray of the pushed chunk. Not empty, except that
   * an empty message, or an empty last fragment, gives one empty part with `isLast`. `isFirst` and `isLast` are the
   * message's, not the frame's.
   */
  onMessage(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void;
  onPing(payload: Uint8Array): void;
  onPong(payload: Uint8Array): void;
  /** 1005 when the frame carried no code. Nothing after it is decoded. */
  onClose(code: number, reason: string): void;
}

const FIN = 0x80;
const RESERVED_BITS = 0x70;
const OPCODE_BITS = 0x0f;
const CONTROL_BIT = 0x08;
const MASKED = 0x80;
const LENGTH_BITS = 0x7f;
const NOTHING: Uint8Array = new Uint8Array(0);

/**
 * Decodes RFC 6455 frames without assembling messages: payload is handed on in the parts in which it is pushed.
 * `push` throws ProtocolError when the peer is wrong; the decoder is finished then.
 */
export class WebSocketFrameDecoder {
  readonly #isServer: boolean;
  readonly #handler: WebSocketFrameHandler;
  readonly #limits: WebSocketLimits;
  readonly #header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  #headerBytes = 0;
  #opcode = 0;
  #isFin = false;
  #maskKey = 0;
  #maskPhase = 0;
  #payloadBytesLeft = -1;
  #control: Uint8Array = NOTHING;
  #controlBytes = 0;
  #isInMessage = false;
  #isText = false;
  #hasGivenPart = false;
  #messageBytes = 0;
  #fragments = 0;
  #isClosed = false;

  constructor(
    role: WebSocketRole,
    handler: WebSocketFrameHandler,
    limits: WebSocketLimits = defaultWebSocketLimits,
  ) {
    this.#isServer = role === "server";
    this.#handler = handler;
    this.#limits = limits;
  }

  /** True between frames: the only moment at which a connection may end without cutting something. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && this.#payloadBytesLeft === -1;
  }

  push(chunk: Uint8Array): void {
    let offset = 0;
    while (!this.#isClosed && (offset < chunk.byteLength || this.#payloadBytesLeft === 0)) {
      if (this.#payloadBytesLeft === -1) {
        offset = this.#readHeader(chunk, offset);
      } else {
        const length = Math.min(this.#payloadBytesLeft, chunk.byteLength - offset);
        const part = chunk.subarray(offset, offset + length);
        offset += length;
        this.#payloadBytesLeft -= length;
        if (this.#isServer && length > 0) this.#maskPhase = applyMask(part, this.#maskKey, this.#maskPhase);
        if ((this.#opcode & CONTROL_BIT) !== 0) this.#takeControl(part);
        else this.#takeData(part);
      }
    }
  }

  /** Collects the header, which may come byte by byte; returns the offset behind what it took. */
  #readHeader(chunk: Uint8Array, offset: number): number {
    const header = this.#header;
    while (offset < chunk.byteLength) {
      header[this.#headerBytes++] = chunk[offset++] as number;
      if (this.#headerBytes === 2) this.#checkStart(header[0] as number, header[1] as number);
      if (this.#headerBytes >= 2 && this.#headerBytes === headerLength(header[1] as number)) {
        this.#startPayload();
        break;
      }
    }
    return offset;
  }

  #checkStart(first: number, second: number): void {
    const opcode = first & OPCODE_BITS;
    const isFin = (first & FIN) !== 0;
    if ((first & RESERVED_BITS) !== 0)
      throw malformed("a reserved bit is set, and no extension was negotiated");
    if (((second & MASKED) !== 0) !== this.#isServer) {
      throw malformed(this.#isServer ? "a client's frame is not masked" : "a server's frame is masked");
    }
    if ((opcode & CONTROL_BIT) !== 0) {
      if (opcode > OPCODE.PONG) throw malformed(`opcode ${opcode} is reserved`);
      if (!isFin) throw malformed("a control frame is fragmented");
      if ((second & LENGTH_BITS) > MAX_CONTROL_PAYLOAD_BYTES) throw malformed("a control frame is too long");
    } else if (opcode > OPCODE.BINARY) {
      throw malformed(`opcode ${opcode} is reserved`);
    } else if ((opcode === OPCODE.CONTINUATION) !== this.#isInMessage) {
      throw malformed(
        this.#isInMessage ? "a message starts within another" : "a continuation without a message",
      );
    }
    this.#opcode = opcode;
    this.#isFin = isFin;
  }

  #startPayload(): void {
    const header = this.#header;
    const payloadBytes = payloadLength(header);
    if (payloadBytes > this.#limits.maxFrameBytes) {
      throw new ProtocolError("frame-too-large", `a frame of ${payloadBytes} bytes is announced`);
    }
    if (this.#isServer) this.#maskKey = uint32At(header, this.#headerBytes - 4);
    this.#maskPhase = 0;
    this.#headerBytes = 0;
    this.#payloadBytesLeft = payloadBytes;
    if ((this.#opcode & CONTROL_BIT) !== 0) {
      this.#control = payloadBytes === 0 ? NOTHING : new Uint8Array(payloadBytes);
      this.#controlBytes = 0;
    } else {
      this.#startDataFrame(payloadBytes);
    }
  }

  #startDataFrame(payloadBytes: number): void {
    if (!this.#isInMessage) {
      this.#isInMessage = true;
      this.#isText = this.#opcode === OPCODE.TEXT;
      this.#hasGivenPart = false;
      this.#messageBytes = 0;
      this.#fragments = 0;
    }
    this.#messageBytes += payloadBytes;
    this.#fragments += 1;
    if (this.#messageBytes > this.#limits.maxMessageBytes) {
      throw new ProtocolError("message-too-large", `a message of ${this.#messageBytes} bytes is announced`);
    }
    if (this.#fragments > this.#limits.maxFragments) {
      throw new ProtocolError(
        "message-too-large",
        `a message has more than ${this.#limits.maxFragments} fragments`,
      );
    }
  }

  #takeData(part: Uint8Array): void {
    const isFrameOver = this.#payloadBytesLeft === 0;
    const isLast = isFrameOver && this.#isFin;
    if (isFrameOver) this.#payloadBytesLeft = -1;
    if (isLast) this.#isInMessage = false;
    if (part.byteLength === 0 && !isLast) return;
    const isFirst = !this.#hasGivenPart;
    this.#hasGivenPart = true;
    this.#handler.onMessage(part, isFirst, isLast, this.#isText);
  }

  #takeControl(part: Uint8Array): void {
    this.#control.set(part, this.#controlBytes);
    this.#controlBytes += part.byteLength;
    if (this.#payloadBytesLeft > 0) return;
    this.#payloadBytesLeft = -1;
    if (this.#opcode === OPCODE.PING) this.#handler.onPing(this.#control);
    else if (this.#opcode === OPCODE.PONG) this.#handler.onPong(this.#control);
    else {
      const { code, reason } = decodeClosePayload(this.#control);
      this.#isClosed = true;
      this.#handler.onClose(code, reason);
    }
  }
}

function headerLength(second: number): number {
  const length = second & LENGTH_BITS;
  const lengthBytes = length === 127 ? 8 : length === 126 ? 2 : 0;
  return 2 + lengthBytes + ((second & MASKED) === 0 ? 0 : 4);
}

function payloadLength(header: Uint8Array): number {
  const length = (header[1] as number) & LENGTH_BITS;
  if (length < 126) return length;
  if (length === 126) return ((header[2] as number) << 8) | (header[3] as number);
  const high = uint32At(header, 2);
  // Section 5.2: the most significant bit must be 0; beyond 2^53 no number here could count it.
  if (high > 0x1f_ffff)
    throw new ProtocolError("frame-too-large", "a frame of more than 2^53 bytes is announced");
  return high * 2 ** 32 + uint32At(header, 6);
}

function uint32At(bytes: Uint8Array, offset: number): number {
  const at = (index: number): number => bytes[offset + index] as number;
  return ((at(0) << 24) | (at(1) << 16) | (at(2) << 8) | at(3)) >>> 0;
}

function malformed(message: string): ProtocolError {
  return new ProtocolError("malformed-frame", message);
}
