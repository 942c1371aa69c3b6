import { ProtocolError } from "../protocol-error.ts";
import { decodeClose } from "./control-frame.ts";
import { applyMask, isControlOpcode, OPCODE } from "./frame-header.ts";
import { FrameHeaderReader } from "./frame-header-reader.ts";

/**
 * Bounds for one WebSocket peer. They protect no buffer, because payload is passed on in parts and never
 * assembled.
 */
export interface WebSocketLimits {
  /**
   * Payload of one frame, checked in its header before any payload is passed on. Larger: `frame-too-large` (1009).
   */
  readonly maxFrameBytes: number;
  /** Payload of one message, over all of its fragments: `message-too-large` (1009). `Infinity` for a relay. */
  readonly maxMessageBytes: number;
  /**
   * Data frames in one message: `too-many-fragments` (1008). Tiny fragments cost header work and never end a
   * message; `ws` 8.21 added such a bound for that reason.
   */
  readonly maxFragments: number;
}

/** golang.org/x/net/websocket accepts 32 MiB, so no Kubernetes peer can expect to send more. */
export const defaultWebSocketLimits: WebSocketLimits = {
  maxFrameBytes: 32 * 1024 * 1024,
  maxMessageBytes: Number.POSITIVE_INFINITY,
  maxFragments: 16 * 1024,
};

/** Our side of the connection. A server expects masked frames, a client unmasked ones. */
export type WebSocketRole = "server" | "client";

export interface WebSocketFrameHandler {
  /**
   * Payload of a data message as soon as it arrives: a subarray of the pushed chunk, unmasked in
   * place. Parts are not empty, except that an empty message, or an empty final fragment, gives one
   * empty part with `isLast`. `isFirst` marks the first part of a message, not of a frame.
   */
  onMessage(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void;
  onPing(payload: Uint8Array): void;
  onPong(payload: Uint8Array): void;
  /** The peer's Close; later bytes are ignored. `code` is 1005 if the frame has no body. */
  onClose(code: number, reason: string): void;
}

const EMPTY = new Uint8Array(0);

/**
 * Turns a peer's bytes into parts of messages and control frames, without assembling or copying payload. The decoder
 * unmasks in place, so the pushed chunk is its own from then on and the handler's for as long as it keeps a part.
 *
 *   [ header ] -- checked after 2 bytes, and when whole --> [ payload ] -- complete --> [ header ]
 *   a Close frame, or anything thrown --> over
 */
export class WebSocketFrameDecoder {
  readonly #handler: WebSocketFrameHandler;
  readonly #limits: WebSocketLimits;
  readonly #expectsMask: boolean;
  readonly #frame: FrameHeaderReader;

  #isInPayload = false;
  #payloadBytesLeft = 0;
  #maskPhase = 0;
  /**
   * A control frame's payload that a chunk boundary cuts; nothing else is assembled. At most 125
   * bytes.
   */
  #cutControl: Uint8Array | undefined;

  #isInMessage = false;
  #isTextMessage = false;
  #isFirstPart = false;
  #messageBytes = 0;
  #fragments = 0;

  #isOver = false;

  constructor(
    role: WebSocketRole,
    handler: WebSocketFrameHandler,
    limits: WebSocketLimits = defaultWebSocketLimits,
  ) {
    this.#expectsMask = role === "server";
    this.#frame = new FrameHeaderReader(this.#expectsMask, () => {
      if (!isControlOpcode(this.#frame.opcode)) this.#beginFragment(this.#frame.payloadBytes);
    });
    this.#handler = handler;
    this.#limits = limits;
  }

  /**
   * Throws ProtocolError after the handler received everything before the fault; `closeCodeOf`
   * gives the close code. After that, and after a Close frame, pushed bytes are ignored. A handler
   * must not push into the decoder that calls it.
   */
  push(chunk: Uint8Array): void {
    let at = 0;
    try {
      while (at < chunk.length && !this.#isOver) {
        at = this.#isInPayload ? this.#readPayload(chunk, at) : this.#readHeader(chunk, at);
      }
    } catch (reason) {
      this.#isOver = true;
      throw reason;
    }
  }

  /** True if no frame has started, or if the decoder is over. A message may still be incomplete. */
  get isBetweenFrames(): boolean {
    return this.#isOver || (!this.#isInPayload && this.#frame.isComplete);
  }

  /** True if a message has begun but has not ended. */
  get isInMessage(): boolean {
    return this.#isInMessage;
  }

  #readHeader(chunk: Uint8Array, start: number): number {
    const at = this.#frame.read(chunk, start, this.#isInMessage);
    if (this.#frame.isComplete) this.#beginFrame();
    return at;
  }

  #beginFrame(): void {
    this.#payloadBytesLeft = this.#frame.payloadBytes;
    this.#maskPhase = 0;
    if (this.#payloadBytesLeft === 0) this.#deliver(EMPTY);
    else this.#isInPayload = true;
  }

  /** Called before the mask key arrives, so that the length alone can refuse the frame. */
  #beginFragment(payloadBytes: number): void {
    if (this.#frame.opcode !== OPCODE.CONTINUATION) {
      this.#isInMessage = true;
      this.#isTextMessage = this.#frame.opcode === OPCODE.TEXT;
      this.#isFirstPart = true;
      this.#messageBytes = 0;
      this.#fragments = 0;
    }
    this.#fragments += 1;
    this.#messageBytes += payloadBytes;

    const { maxFrameBytes, maxMessageBytes, maxFragments } = this.#limits;
    // A length of 2^53 or more (RFC 6455 forbids its top bit) exceeds every limit: `Infinity` means
    // 2^53 - 1 here.
    if (payloadBytes > Math.min(maxFrameBytes, Number.MAX_SAFE_INTEGER)) {
      throw new ProtocolError("frame-too-large", `a frame announces more than ${maxFrameBytes} bytes`);
    }
    if (this.#messageBytes > maxMessageBytes) {
      throw new ProtocolError("message-too-large", `a message has more than ${maxMessageBytes} bytes`);
    }
    if (this.#fragments > maxFragments) {
      throw new ProtocolError("too-many-fragments", `a message has more than ${maxFragments} fragments`);
    }
  }

  #readPayload(chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + this.#payloadBytesLeft);
    const part = chunk.subarray(at, end);
    if (this.#expectsMask) this.#maskPhase = applyMask(part, this.#frame.maskKey, this.#maskPhase);
    this.#payloadBytesLeft -= part.length;
    this.#isInPayload = this.#payloadBytesLeft > 0;
    this.#deliver(part);
    return end;
  }

  /** Delivers a part; the frame is complete when no payload is left. */
  #deliver(part: Uint8Array): void {
    if (isControlOpcode(this.#frame.opcode)) {
      const payload = this.#wholeControl(part);
      if (payload !== undefined) this.#deliverControl(payload);
      return;
    }
    const isLast = this.#frame.isFinal && !this.#isInPayload;
    if (part.length === 0 && !isLast) return;
    const isFirst = this.#isFirstPart;
    this.#isFirstPart = false;
    if (isLast) this.#isInMessage = false;
    this.#handler.onMessage(part, isFirst, isLast, this.#isTextMessage);
  }

  #wholeControl(part: Uint8Array): Uint8Array | undefined {
    const begun = this.#cutControl;
    if (begun === undefined) {
      if (!this.#isInPayload) return part;
      this.#cutControl = new Uint8Array(part.length + this.#payloadBytesLeft);
      this.#cutControl.set(part);
      return undefined;
    }
    begun.set(part, begun.length - this.#payloadBytesLeft - part.length);
    if (this.#isInPayload) return undefined;
    this.#cutControl = undefined;
    return begun;
  }

  #deliverControl(payload: Uint8Array): void {
    if (this.#frame.opcode === OPCODE.PING) this.#handler.onPing(payload);
    else if (this.#frame.opcode === OPCODE.PONG) this.#handler.onPong(payload);
    else {
      const { code, reason } = decodeClose(payload);
      this.#isOver = true;
      this.#handler.onClose(code, reason);
    }
  }
}
