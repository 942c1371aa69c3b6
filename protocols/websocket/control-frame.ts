import { readUint16 } from "../bytes/index.ts";
import { ProtocolError, type ProtocolErrorCode } from "../protocol-error.ts";
import {
  applyMask,
  MAX_CONTROL_PAYLOAD_BYTES,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "./frame-header.ts";

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

/** The close codes of RFC 6455, section 7.4.1, that Sluice sends or distinguishes. */
export const CLOSE = {
  NORMAL: 1000,
  GOING_AWAY: 1001,
  PROTOCOL_ERROR: 1002,
  UNSUPPORTED_DATA: 1003,
  /** Never on the wire: the connection ended without a Close frame. */
  ABNORMAL: 1006,
  INVALID_UTF8: 1007,
  POLICY_VIOLATION: 1008,
  TOO_BIG: 1009,
  INTERNAL_ERROR: 1011,
} as const;

/**
 * `onClose` reports this, and `encodeClose` accepts it, for a Close frame without a body. Never on
 * the wire itself.
 */
export const NO_CLOSE_CODE = 1005;

/**
 * Whether this code may appear in a Close frame (RFC 6455 section 7.4). 1004, 1005, 1006 and 1015
 * are reserved for local use, the rest below 3000 for future standards; 1012 to 1014 are registered
 * with IANA. The same set as in `ws`.
 */
export function isWireCloseCode(code: number): boolean {
  if (!Number.isInteger(code)) return false;
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && !(code >= 1004 && code <= 1006);
}

const closeCodes: Partial<Record<ProtocolErrorCode, number>> = {
  "invalid-utf8": CLOSE.INVALID_UTF8,
  "too-many-fragments": CLOSE.POLICY_VIOLATION,
  "frame-too-large": CLOSE.TOO_BIG,
  "message-too-large": CLOSE.TOO_BIG,
};

/** The close code for a refused peer: 1007, 1008 or 1009, and 1002 (protocol error) for the rest. */
export function closeCodeOf(error: ProtocolError): number {
  return closeCodes[error.code] ?? CLOSE.PROTOCOL_ERROR;
}
