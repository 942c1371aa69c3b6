import { NO_CLOSE_CODE } from "./close-code.ts";
import type { WebSocketRole } from "./frame-decoder.ts";
import { isControlOpcode, OPCODE } from "./frame-header.ts";
import { FrameHeaderReader } from "./frame-header-reader.ts";

export interface FrameWalkerHandler {
  /** A data message begins. */
  onMessageStart(): void;
  /**
   * Payload of a data message: the bytes of `chunk` from `start` to `end`, never none. They are as on the wire: each is to be unmasked with
   * a byte of `maskKey` (32 bits, the first on the wire highest; 0 where nothing is masked), the first with byte `maskPhase` (0 to 3).
   */
  onPayload(chunk: Uint8Array, start: number, end: number, maskKey: number, maskPhase: number): void;
  onMessageEnd(): void;
  /** 1005 where the Close frame has no body. */
  onClose(code: number): void;
}

const CLOSE_CODE_BYTES = 2;

/**
 * Walks over the frames of a WebSocket that others decode: reads headers and close codes, and tells where payload lies. Pushed chunks are
 * neither copied nor written to, and nothing is allocated, however many frames there are.
 */
export class WebSocketFrameWalker {
  readonly #handler: FrameWalkerHandler;
  readonly #frame: FrameHeaderReader;
  #payloadBytesLeft = 0;
  #maskPhase = 0;
  #isInMessage = false;
  #closeBytes = 0;
  #closeCode = 0;

  /** `role`: the receiver's, as of the decoder. A server's frames come masked. */
  constructor(role: WebSocketRole, handler: FrameWalkerHandler) {
    this.#frame = new FrameHeaderReader(role === "server");
    this.#handler = handler;
  }

  /** Throws ProtocolError at what no receiver accepts; nothing may be pushed after that. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      at = this.#payloadBytesLeft > 0 ? this.#walkPayload(chunk, at) : this.#walkHeader(chunk, at);
    }
  }

  #walkHeader(chunk: Uint8Array, start: number): number {
    const at = this.#frame.read(chunk, start, this.#isInMessage);
    if (this.#frame.isComplete) this.#beginFrame();
    return at;
  }

  #beginFrame(): void {
    this.#payloadBytesLeft = this.#frame.payloadBytes;
    this.#maskPhase = 0;
    if (!isControlOpcode(this.#frame.opcode) && !this.#isInMessage) {
      this.#isInMessage = true;
      this.#handler.onMessageStart();
    }
    if (this.#payloadBytesLeft === 0) this.#endFrame();
  }

  #walkPayload(chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + this.#payloadBytesLeft);
    this.#payloadBytesLeft -= end - at;
    if (this.#frame.opcode === OPCODE.CLOSE) this.#readCloseCode(chunk, at, end);
    else if (!isControlOpcode(this.#frame.opcode)) this.#showData(chunk, at, end);
    if (this.#payloadBytesLeft === 0) this.#endFrame();
    return end;
  }

  #readCloseCode(chunk: Uint8Array, start: number, end: number): void {
    for (let at = start; at < end && this.#closeBytes < CLOSE_CODE_BYTES; at++) {
      const unmasked = ((chunk[at] as number) ^ (this.#frame.maskKey >>> (24 - 8 * this.#closeBytes))) & 0xff;
      this.#closeCode = (this.#closeCode << 8) | unmasked;
      this.#closeBytes += 1;
    }
  }

  #showData(chunk: Uint8Array, start: number, end: number): void {
    this.#handler.onPayload(chunk, start, end, this.#frame.maskKey, this.#maskPhase);
    this.#maskPhase = (this.#maskPhase + end - start) & 3;
  }

  #endFrame(): void {
    if (this.#frame.opcode === OPCODE.CLOSE) {
      this.#handler.onClose(this.#closeBytes === 0 ? NO_CLOSE_CODE : this.#closeCode);
    } else if (!isControlOpcode(this.#frame.opcode) && this.#frame.isFinal) {
      this.#isInMessage = false;
      this.#handler.onMessageEnd();
    }
  }
}
