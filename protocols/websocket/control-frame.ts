import { readUint16 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import { isWireCloseCode, NO_CLOSE_CODE } from "./close-code.ts";
import {
  MAX_CONTROL_PAYLOAD_BYTES,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "./frame-header.ts";
import { applyMask } from "./mask.ts";

const CODE_BYTES = 2;

/**
 * A complete Ping, Pong or Close frame, masked if a key is given (a client's). Copies the payload.
 * Throws RangeError beyond 125 bytes, which only a caller's mistake can cause.
 */
export function encodeControlFrame(opcode: number, payload: Uint8Array, maskKey?: number): Uint8Array {
  const payloadBytes = payload.length;
  if (payloadBytes > MAX_CONTROL_PAYLOAD_BYTES) {
    throw new RangeError(
      `a control frame carries at most ${MAX_CONTROL_PAYLOAD_BYTES} bytes, not ${payloadBytes}`,
    );
  }
  const frame = new Uint8Array(MAX_FRAME_HEADER_BYTES + payloadBytes);
  const headerBytes =
    maskKey === undefined
      ? writeFrameHeader(frame, 0, opcode, payloadBytes, true)
      : writeMaskedFrameHeader(frame, 0, opcode, payloadBytes, true, maskKey);
  frame.set(payload, headerBytes);
  const end = headerBytes + payloadBytes;
  if (maskKey !== undefined) applyMask(frame.subarray(headerBytes, end), maskKey, 0);
  return frame.subarray(0, end);
}

/**
 * A complete Close frame. Truncates a reason beyond 123 bytes of UTF-8 between characters: it is
 * often an upstream's error, and must not keep us from closing. 1005 gives a frame without a body,
 * which echoes one. Throws RangeError for any other code that may not be on the wire.
 */
export function encodeClose(code: number, reason: string, maskKey?: number): Uint8Array {
  if (code === NO_CLOSE_CODE) return encodeControlFrame(OPCODE.CLOSE, new Uint8Array(0), maskKey);
  if (!isWireCloseCode(code)) throw new RangeError(`${code} is not a close code that may be sent`);
  const payload = new Uint8Array(MAX_CONTROL_PAYLOAD_BYTES);
  payload[0] = code >>> 8;
  payload[1] = code;
  const { written } = new TextEncoder().encodeInto(reason, payload.subarray(CODE_BYTES));
  return encodeControlFrame(OPCODE.CLOSE, payload.subarray(0, CODE_BYTES + written), maskKey);
}

interface CloseReason {
  readonly code: number;
  readonly reason: string;
}

/**
 * Reads an unmasked Close body. Throws ProtocolError for an invalid code and for a reason that is
 * not UTF-8.
 */
export function decodeClose(payload: Uint8Array): CloseReason {
  if (payload.length === 0) return { code: NO_CLOSE_CODE, reason: "" };
  const code = readUint16(payload, 0);
  if (!isWireCloseCode(code))
    throw new ProtocolError("malformed-frame", `close code ${code} may not be sent`);
  try {
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    return { code, reason: decoder.decode(payload.subarray(CODE_BYTES)) };
  } catch {
    throw new ProtocolError("invalid-utf8", "the reason of a Close frame is not UTF-8");
  }
}
