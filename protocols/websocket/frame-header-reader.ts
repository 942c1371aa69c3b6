import { ProtocolError } from "../protocol-error.ts";
import {
  FIN_BIT,
  LENGTH_BITS,
  MASK_BIT,
  MAX_CONTROL_PAYLOAD_BYTES,
  OPCODE,
  OPCODE_BITS,
  RSV_BITS,
} from "./frame-header.ts";

const FIRST_CONTROL_OPCODE = OPCODE.CLOSE;

/** The data opcodes are 0 to 7, the control opcodes 8 to 15 (RFC 6455 section 5.2). */
export function isControlOpcode(opcode: number): boolean {
  return opcode >= FIRST_CONTROL_OPCODE;
}

/** Refuses what the first two bytes of a frame already give away, so that no frame is waited for in vain. */
export function checkFrameStart(
  first: number,
  second: number,
  expectsMask: boolean,
  isInMessage: boolean,
): void {
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
