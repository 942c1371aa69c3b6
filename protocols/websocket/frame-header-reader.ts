import { readUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import {
  FIN_BIT,
  FRAME_START_BYTES,
  isControlOpcode,
  LENGTH_BITS,
  lengthEnd,
  MASK_BIT,
  MASK_KEY_BYTES,
  MAX_CONTROL_PAYLOAD_BYTES,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  OPCODE_BITS,
  payloadBytesOf,
  RSV_BITS,
} from "./frame-header.ts";

/**
 * Reads a frame's header from chunks cut anywhere. The fields describe the last header, up to its
 * length once that was read; the mask key follows.
 */
export class FrameHeaderReader {
  opcode = 0;
  isFinal = false;
  payloadBytes = 0;
  /** 0 if the frame is not masked. */
  maskKey = 0;
  /** The next header has not started. */
  isComplete = true;
  readonly #expectsMask: boolean;
  readonly #onLength: (() => void) | undefined;
  readonly #header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  #bytesRead = 0;
  #bytes = FRAME_START_BYTES;
  #isLengthRead = false;

  /**
   * `onLength`: called before the mask key is read; may throw, so that the length alone refuses a
   * frame.
   */
  constructor(expectsMask: boolean, onLength?: () => void) {
    this.#expectsMask = expectsMask;
    this.#onLength = onLength;
  }

  /**
   * Returns the index after the bytes it read. Throws ProtocolError for an invalid frame as soon as
   * two bytes show it.
   */
  read(chunk: Uint8Array, start: number, isInMessage: boolean): number {
    const header = this.#header;
    let at = start;
    this.isComplete = false;
    while (at < chunk.length) {
      header[this.#bytesRead++] = chunk[at++] as number;
      if (this.#bytesRead < this.#bytes) continue;
      if (this.#bytesRead === FRAME_START_BYTES) {
        const second = header[1] as number;
        checkFrameStart(header[0] as number, second, this.#expectsMask, isInMessage);
        this.#bytes = lengthEnd(second);
        if (this.#bytesRead < this.#bytes) continue;
      }
      if (!this.#isLengthRead) {
        this.#readLength();
        if (this.#bytesRead < this.#bytes) continue;
      }
      this.#complete();
      break;
    }
    return at;
  }

  #readLength(): void {
    const first = this.#header[0] as number;
    this.opcode = first & OPCODE_BITS;
    this.isFinal = (first & FIN_BIT) !== 0;
    this.payloadBytes = payloadBytesOf(this.#header);
    this.#isLengthRead = true;
    this.#onLength?.();
    if (this.#expectsMask) this.#bytes += MASK_KEY_BYTES;
  }

  #complete(): void {
    this.maskKey = this.#expectsMask ? readUint32(this.#header, this.#bytes - MASK_KEY_BYTES) : 0;
    this.#isLengthRead = false;
    this.#bytesRead = 0;
    this.#bytes = FRAME_START_BYTES;
    this.isComplete = true;
  }
}

/** Refuses a frame by its first two bytes, so that we never wait for the rest of an invalid one. */
function checkFrameStart(first: number, second: number, expectsMask: boolean, isInMessage: boolean): void {
  // No extension is negotiated, so these bits are undefined (RFC 6455 section 5.2).
  if ((first & RSV_BITS) !== 0) throw malformed("a reserved bit is set");

  const opcode = first & OPCODE_BITS;
  if (isControlOpcode(opcode)) checkControl(opcode, (first & FIN_BIT) !== 0, second & LENGTH_BITS);
  else checkData(opcode, isInMessage);

  // RFC 6455 section 5.1: clients mask, servers do not, and each side closes on the other's
  // mistake.
  const isMasked = (second & MASK_BIT) !== 0;
  if (isMasked !== expectsMask) {
    throw malformed(isMasked ? "a server's frame is masked" : "a client's frame is not masked");
  }
}

function checkControl(opcode: number, isFinal: boolean, length: number): void {
  if (opcode > OPCODE.PONG) throw malformed(`opcode ${opcode} is reserved`);
  if (!isFinal) throw malformed("a control frame is fragmented");
  if (length > MAX_CONTROL_PAYLOAD_BYTES) throw malformed("a control frame is longer than 125 bytes");
  // Half a close code.
  if (opcode === OPCODE.CLOSE && length === 1) throw malformed("a Close frame has a body of one byte");
}

function checkData(opcode: number, isInMessage: boolean): void {
  if (opcode > OPCODE.BINARY) throw malformed(`opcode ${opcode} is reserved`);
  if (opcode === OPCODE.CONTINUATION) {
    if (!isInMessage) throw malformed("a continuation frame without a message to continue");
  } else if (isInMessage) {
    throw malformed("a new message starts before the last one ended");
  }
}

function malformed(message: string): ProtocolError {
  return new ProtocolError("malformed-frame", message);
}
