import type { ProtocolError, ProtocolErrorCode } from "../protocol-error.ts";

/** What `onClose` reports, and `encodeClose` takes, for a Close frame without a body. Never on the wire itself. */
export const NO_CLOSE_CODE = 1005;

/**
 * May this code stand in a Close frame (RFC 6455 section 7.4)? 1004, 1005, 1006 and 1015 are reserved for local use, the
 * rest below 3000 for future standards; 1012 to 1014 are registered with IANA. The same set as in `ws`.
 */
export function isWireCloseCode(code: number): boolean {
  if (!Number.isInteger(code)) return false;
  if (code >= 3000) return code <= 4999;
  return code >= 1000 && code <= 1014 && !(code >= 1004 && code <= 1006);
}

const closeCodes: Partial<Record<ProtocolErrorCode, number>> = {
  "invalid-utf8": 1007,
  "too-many-fragments": 1008,
  "frame-too-large": 1009,
  "message-too-large": 1009,
};

/** The close code that tells the peer why it was refused: 1007, 1008 or 1009, and 1002 (protocol error) for the rest. */
export function closeCodeOf(error: ProtocolError): number {
  return closeCodes[error.code] ?? 1002;
}
