import { readUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import {
  FIN_BIT,
  FRAME_START_BYTES,
  frameHeaderBytes,
  isControlOpcode,
  LENGTH_BITS,
  MASK_BIT,
  MAX_CONTROL_PAYLOAD_BYTES,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  OPCODE_BITS,
  payloadBytesOf,
  RSV_BITS,
} from "./frame-header.ts";

/** Reads a frame's header from chunks cut anywhere. The fields describe the last complete header. */
export class FrameHeaderReader {
  opcode = 0;
  isFinal = false;
  payloadBytes = 0;
  /** 0 if the frame is not masked. */
  maskKey = 0;
  /** The next header has not started. */
  isComplete = true;
  readonly #expectsMask: boolean;
  readonly #header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  #bytesRead = 0;
  #bytes = FRAME_START_BYTES;

  constructor(expectsMask: boolean) {
    this.#expectsMask = expectsMask;
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
        this.#bytes = frameHeaderBytes(second);
        if (this.#bytesRead < this.#bytes) continue;
      }
      this.#complete();
      break;
    }
    return at;
  }

  #complete(): void {
    const header = this.#header;
    const first = header[0] as number;
    this.opcode = first & OPCODE_BITS;
    this.isFinal = (first & FIN_BIT) !== 0;
    this.payloadBytes = payloadBytesOf(header);
    this.maskKey = this.#expectsMask ? readUint32(header, this.#bytes - 4) : 0;
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
