import { MAX_CONTROL_PAYLOAD_BYTES, OPCODE } from "./constants.ts";
import { applyMask } from "./mask.ts";

const FIN = 0x80;
const MASKED = 0x80;
const LENGTH_IS_16_BIT = 126;
const LENGTH_IS_64_BIT = 127;

/** Writes the header of an unmasked frame (a server's) at `offset` and returns its length, 2 to 10 bytes. */
export function writeFrameHeader(
  target: Uint8Array,
  offset: number,
  opcode: number,
  payloadBytes: number,
  fin: boolean,
): number {
  target[offset] = (fin ? FIN : 0) | opcode;
  if (payloadBytes < LENGTH_IS_16_BIT) {
    target[offset + 1] = payloadBytes;
    return 2;
  }
  if (payloadBytes <= 0xffff) {
    target[offset + 1] = LENGTH_IS_16_BIT;
    target[offset + 2] = payloadBytes >>> 8;
    target[offset + 3] = payloadBytes;
    return 4;
  }
  target[offset + 1] = LENGTH_IS_64_BIT;
  writeUint32(target, offset + 2, Math.floor(payloadBytes / 2 ** 32));
  writeUint32(target, offset + 6, payloadBytes >>> 0);
  return 10;
}

/** The same for a masked frame (a client's), 6 to 14 bytes. The payload must be masked with the same key from phase 0. */
export function writeMaskedFrameHeader(
  target: Uint8Array,
  offset: number,
  opcode: number,
  payloadBytes: number,
  fin: boolean,
  maskKey: number,
): number {
  const headerBytes = writeFrameHeader(target, offset, opcode, payloadBytes, fin);
  target[offset + 1] = (target[offset + 1] as number) | MASKED;
  writeUint32(target, offset + headerBytes, maskKey);
  return headerBytes + 4;
}

/** A whole control frame; masked when a key is given. Throws RangeError above 125 bytes of payload. */
export function encodeControlFrame(opcode: number, payload: Uint8Array, maskKey?: number): Uint8Array {
  if (payload.byteLength > MAX_CONTROL_PAYLOAD_BYTES) {
    throw new RangeError(`a control frame carries at most ${MAX_CONTROL_PAYLOAD_BYTES} bytes`);
  }
  const headerBytes = maskKey === undefined ? 2 : 6;
  const frame = new Uint8Array(headerBytes + payload.byteLength);
  frame.set(payload, headerBytes);
  if (maskKey === undefined) writeFrameHeader(frame, 0, opcode, payload.byteLength, true);
  else {
    writeMaskedFrameHeader(frame, 0, opcode, payload.byteLength, true, maskKey);
    applyMask(frame.subarray(headerBytes), maskKey, 0);
  }
  return frame;
}

/** A Close frame. The reason is cut to what fits, at a character's end. */
export function encodeClose(code: number, reason: string, maskKey?: number): Uint8Array {
  const payload = new Uint8Array(MAX_CONTROL_PAYLOAD_BYTES);
  payload[0] = code >>> 8;
  payload[1] = code;
  const { written } = new TextEncoder().encodeInto(reason, payload.subarray(2));
  return encodeControlFrame(OPCODE.CLOSE, payload.subarray(0, 2 + written), maskKey);
}

function writeUint32(target: Uint8Array, offset: number, value: number): void {
  target[offset] = value >>> 24;
  target[offset + 1] = value >>> 16;
  target[offset + 2] = value >>> 8;
  target[offset + 3] = value;
}
