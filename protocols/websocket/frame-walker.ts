import { readUint16 } from "../bytes/index.ts";
import { NO_CLOSE_CODE } from "./control-frame.ts";
import type { WebSocketRole } from "./frame-decoder.ts";
import {
  FIN_BIT,
  isControlOpcode,
  MAX_CONTROL_PAYLOAD_BYTES,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
} from "./frame-header.ts";
import { FrameHeaderReader } from "./frame-header-reader.ts";

export interface FrameWalkerHandler {
  /** A data message begins. */
  onMessageStart(): void;
  /**
   * Payload of a data message as on the wire: bytes `start` to `end` of `chunk`, never empty. Its
   * first byte is masked with byte `maskPhase` (0 to 3) of `maskKey` (first byte highest; 0: none).
   */
  onPayload(chunk: Uint8Array, start: number, end: number, maskKey: number, maskPhase: number): void;
  onMessageEnd(): void;
  /** A Close frame starts; none of it was forwarded yet. */
  onCloseStart(): void;
  /** 1005 if the Close frame has no body. */
  onClose(code: number): void;
  /** A complete PING. The handler may keep the payload, which is unmasked. */
  onPing(payload: Uint8Array): void;
  /**
   * Whether to drop a data message; undefined: more of it is needed. `firstByte`: unmasked, -1
   * before it comes. `bytes`: its payload so far, 2 for 2 or more. Absent: none is dropped.
   */
  isUnwanted?(firstByte: number, bytes: number, isWhole: boolean): boolean | undefined;
  /**
   * Bytes to forward, after the events in them: all except PINGs, PONGs and unwanted messages. A
   * chunk without those is passed whole.
   */
  onPass(bytes: Uint8Array): void;
  /** The sender is between two frames, and all earlier bytes were forwarded. Called once after `awaitBoundary`. */
  onBoundary(): void;
}

/** The most bytes held of a message: an empty frame, a frame with its first byte, the next header. */
const MAX_HELD_BYTES = 3 * MAX_FRAME_HEADER_BYTES + 1;
/** The number of payload bytes that decide whether a message is wanted. */
const DECIDING_BYTES = 2;

/**
 * Follows the frames of a WebSocket that passes through: reports payload, PINGs, close codes, and
 * the bytes to forward. Never copies chunks or writes to them. Holds a header at the end of a chunk
 * until the byte after it arrives, and a message's first frames until `isUnwanted` decides.
 */
export class WebSocketFrameWalker {
  readonly #handler: FrameWalkerHandler;
  readonly #frame: FrameHeaderReader;
  #payloadBytesLeft = 0;
  #maskPhase = 0;
  #isInMessage = false;
  /** The payload of a PING or Close. */
  #control: Uint8Array | undefined;
  #controlBytes = 0;
  /** The current frame is not forwarded: it is a PING, a PONG, or part of an unwanted message. */
  #isSkipped = false;
  #isDropping = false;
  /** Only the current frame's header has been read. */
  #isHeader = false;
  #headerStart = 0;
  /** The current frame begins in the current chunk. */
  #hasBegunHere = false;
  readonly #held = new Uint8Array(MAX_HELD_BYTES);
  #heldBytes = 0;
  /** Bytes of `#held` in whole frames of a message that `isUnwanted` has not decided on. */
  #heldFrameBytes = 0;
  #isUndecided = false;
  #firstByte = -1;
  #messageBytes = 0;
  #hasBegunMessage = false;
  #isBoundaryDue = false;
  /** The index of the current chunk's first byte that was not forwarded yet. */
  #passStart = 0;

  /** `role`: the receiver's, as in the decoder. A server receives masked frames. */
  constructor(role: WebSocketRole, handler: FrameWalkerHandler) {
    this.#frame = new FrameHeaderReader(role === "server");
    this.#handler = handler;
  }

  /** True if the forwarded bytes end with a whole frame. */
  get isBetweenFrames(): boolean {
    return this.#isHeader || this.#isAtStart;
  }

  /** True if the forwarded bytes end inside a data message. */
  get isInMessage(): boolean {
    return this.#isInMessage && !this.#isUndecided && !(this.#isHeader && this.#hasBegunMessage);
  }

  get #isAtStart(): boolean {
    return this.#payloadBytesLeft === 0 && this.#frame.isComplete;
  }

  /** After `push` has thrown: the bytes from earlier chunks that were not forwarded. */
  takeHeld(): Uint8Array {
    const held = this.#held.slice(0, this.#heldBytes);
    this.#heldBytes = this.#heldFrameBytes = 0;
    return held;
  }

  /** Bytes of the last chunk that were forwarded or dropped; the rest belongs to a refused frame. */
  get passedBytes(): number {
    return this.#passStart;
  }

  /** True if the frames before the current one end inside a data message. */
  get wasInMessage(): boolean {
    return this.#isInMessage && !this.#hasBegunMessage;
  }

  /** Within `onPayload`: forwards its chunk up to the frame. False: part of the frame was sent. */
  passBeforeFrame(chunk: Uint8Array): boolean {
    if (this.#hasBegunHere) this.#passUpTo(chunk, this.#headerStart);
    return this.#hasBegunHere || this.#hasHeldHeader;
  }

  /** Read within `onPayload`: more payload of the frame follows. */
  get hasMorePayload(): boolean {
    return this.#payloadBytesLeft > 0;
  }

  get #hasHeldHeader(): boolean {
    return this.#heldBytes > this.#heldFrameBytes;
  }

  /** Requests `onBoundary`. Call it while the sender is inside a frame. */
  awaitBoundary(): void {
    this.#isBoundaryDue = true;
  }

  /** Throws ProtocolError for an invalid frame and forwards none of it. Push nothing after that. */
  push(chunk: Uint8Array): void {
    let at = 0;
    this.#passStart = this.#headerStart = 0;
    this.#hasBegunHere = false;
    while (at < chunk.length) {
      if (this.#isAtStart) this.#startFrame(chunk, at);
      at = this.#payloadBytesLeft > 0 ? this.#walkPayload(chunk, at) : this.#walkHeader(chunk, at);
    }
    if (this.#isAtStart && this.#isBoundaryDue) this.#reachBoundary(chunk, at);
    if (this.#isHeader) this.#holdHeader(chunk);
    else this.#passUpTo(chunk, at);
  }

  #holdHeader(chunk: Uint8Array): void {
    this.#passUpTo(chunk, this.#headerStart);
    this.#holdUpTo(chunk, chunk.length);
  }

  #holdUpTo(chunk: Uint8Array, end: number): void {
    const bytes = chunk.subarray(this.#headerStart, end);
    this.#held.set(bytes, this.#heldBytes);
    this.#heldBytes += bytes.byteLength;
  }

  #endHeader(chunk: Uint8Array, at: number): void {
    this.#isHeader = false;
    if (this.#isUndecided && !isControlOpcode(this.#frame.opcode)) this.#decide(chunk, at);
  }

  /** Forwards a header from an earlier chunk, after its frame's first event. */
  #passHeldHeader(): void {
    if (!this.#hasHeldHeader) return;
    const header = this.#held.slice(this.#heldFrameBytes, this.#heldBytes);
    this.#heldBytes = this.#heldFrameBytes;
    if (!this.#isSkipped) this.#handler.onPass(header);
  }

  #decide(chunk: Uint8Array, at: number): void {
    const { isFinal, payloadBytes } = this.#frame;
    if (this.#messageBytes === 0 && payloadBytes > 0) this.#firstByte = this.#unmasked(chunk, at, 0);
    this.#messageBytes = Math.min(DECIDING_BYTES, this.#messageBytes + payloadBytes);
    const isWhole = isFinal && payloadBytes < DECIDING_BYTES;
    const isUnwanted = this.#handler.isUnwanted?.(this.#firstByte, this.#messageBytes, isWhole);
    if (isUnwanted === undefined && !isFinal && payloadBytes < DECIDING_BYTES) {
      this.#holdFrame(chunk, at + payloadBytes);
      return;
    }
    this.#isUndecided = false;
    if (isUnwanted === true) {
      this.#passUpTo(chunk, this.#headerStart);
      this.#heldBytes = this.#heldFrameBytes = 0;
      this.#isSkipped = true;
      this.#isDropping = !isFinal;
    } else if (this.#heldBytes > 0) this.#handler.onPass(this.takeHeld());
  }

  /** Holds a frame until `isUnwanted` decides; leaves out empty continuations. */
  #holdFrame(chunk: Uint8Array, end: number): void {
    this.#passUpTo(chunk, this.#headerStart);
    if (this.#hasBegunMessage || this.#frame.payloadBytes > 0) this.#holdUpTo(chunk, end);
    else this.#heldBytes = this.#heldFrameBytes;
    this.#heldFrameBytes = this.#heldBytes;
    this.#passStart = end;
  }

  /** Decides by a frame's first byte whether to forward it. */
  #startFrame(chunk: Uint8Array, at: number): void {
    if (this.#isBoundaryDue) this.#reachBoundary(chunk, at);
    // With other bits set, the header is malformed.
    const first = chunk[at] as number;
    const isHeartbeat = first === (FIN_BIT | OPCODE.PING) || first === (FIN_BIT | OPCODE.PONG);
    const isSkipped = isHeartbeat || (this.#isDropping && (first & ~FIN_BIT) === OPCODE.CONTINUATION);
    if (isSkipped !== this.#isSkipped) {
      this.#passUpTo(chunk, at);
      this.#isSkipped = isSkipped;
    }
    this.#isHeader = true;
    this.#headerStart = at;
    this.#hasBegunHere = true;
    this.#hasBegunMessage = false;
    if (first !== (FIN_BIT | OPCODE.CLOSE)) return;
    this.#passUpTo(chunk, at);
    this.#handler.onCloseStart();
  }

  #reachBoundary(chunk: Uint8Array, at: number): void {
    this.#passUpTo(chunk, at);
    this.#isBoundaryDue = false;
    this.#handler.onBoundary();
  }

  #passUpTo(chunk: Uint8Array, end: number): void {
    const start = this.#passStart;
    this.#passStart = end;
    if (this.#isSkipped || start === end) return;
    this.#handler.onPass(start === 0 && end === chunk.length ? chunk : chunk.subarray(start, end));
  }

  #walkHeader(chunk: Uint8Array, start: number): number {
    const at = this.#frame.read(chunk, start, this.#isInMessage);
    if (this.#frame.isComplete) this.#beginFrame(chunk, at);
    return at;
  }

  #beginFrame(chunk: Uint8Array, at: number): void {
    this.#payloadBytesLeft = this.#frame.payloadBytes;
    this.#maskPhase = 0;
    if (!isControlOpcode(this.#frame.opcode) && !this.#isInMessage) {
      this.#isInMessage = this.#hasBegunMessage = true;
      this.#isUndecided = this.#handler.isUnwanted !== undefined;
      this.#firstByte = -1;
      this.#messageBytes = 0;
      this.#handler.onMessageStart();
    }
    if (this.#payloadBytesLeft > 0) return;
    this.#endHeader(chunk, at);
    this.#passHeldHeader();
    this.#endFrame();
  }

  #walkPayload(chunk: Uint8Array, at: number): number {
    if (this.#isHeader) this.#endHeader(chunk, at);
    const end = Math.min(chunk.length, at + this.#payloadBytesLeft);
    this.#payloadBytesLeft -= end - at;
    const { opcode } = this.#frame;
    if (!isControlOpcode(opcode)) this.#showData(chunk, at, end);
    else if (opcode !== OPCODE.PONG) this.#readControl(chunk, at, end);
    this.#passHeldHeader();
    if (this.#payloadBytesLeft === 0) this.#endFrame();
    return end;
  }

  #readControl(chunk: Uint8Array, start: number, end: number): void {
    this.#control ??= new Uint8Array(MAX_CONTROL_PAYLOAD_BYTES);
    for (let at = start; at < end; at++) {
      this.#control[this.#controlBytes] = this.#unmasked(chunk, at, this.#controlBytes);
      this.#controlBytes += 1;
    }
  }

  #unmasked(chunk: Uint8Array, at: number, index: number): number {
    return ((chunk[at] as number) ^ (this.#frame.maskKey >>> (24 - 8 * (index & 3)))) & 0xff;
  }

  #showData(chunk: Uint8Array, start: number, end: number): void {
    this.#handler.onPayload(chunk, start, end, this.#frame.maskKey, this.#maskPhase);
    this.#maskPhase = (this.#maskPhase + end - start) & 3;
  }

  #endFrame(): void {
    const { opcode, isFinal } = this.#frame;
    if (opcode === OPCODE.CLOSE || opcode === OPCODE.PING) {
      const payload = this.#control?.slice(0, this.#controlBytes) ?? new Uint8Array(0);
      this.#controlBytes = 0;
      if (opcode === OPCODE.PING) this.#handler.onPing(payload);
      else this.#handler.onClose(payload.byteLength === 0 ? NO_CLOSE_CODE : readUint16(payload, 0));
    } else if (!isControlOpcode(opcode) && isFinal) {
      this.#isInMessage = this.#isDropping = false;
      this.#handler.onMessageEnd();
    }
  }
}
