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

/** The header of the frame that is being read, from chunks cut anywhere. The fields are those of the last whole header. */
export class FrameHeaderReader {
  opcode = 0;
  isFinal = false;
  payloadBytes = 0;
  /** 0 where nothing is masked. */
  maskKey = 0;
  /** Nothing of the next header has been read. */
  isComplete = true;
  readonly #expectsMask: boolean;
  readonly #header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  #bytesRead = 0;
  #bytes = FRAME_START_BYTES;

  constructor(expectsMask: boolean) {
    this.#expectsMask = expectsMask;
  }

  /** Returns the index behind what it took. Throws ProtocolError at what no receiver accepts, as soon as two bytes show it. */
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

/** Refuses what the first two bytes of a frame already give away, so that no frame is waited for in vain. */
function checkFrameStart(first: number, second: number, expectsMask: boolean, isInMessage: boolean): void {
  // No extension is negotiated, so these bits have no meaning (RFC 6455 section 5.2).
  if ((first & RSV_BITS) !== 0) throw malformed("a reserved bit is set");

  const opcode = first & OPCODE_BITS;
  if (isControlOpcode(opcode)) checkControl(opcode, (first & FIN_BIT) !== 0, second & LENGTH_BITS);
  else checkData(opcode, isInMessage);

  // RFC 6455 section 5.1: a client masks, a server does not, and each closes when the other gets it wrong.
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
