import type { ProtocolError, ProtocolErrorCode } from "../protocol-error.ts";

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
 * May this code stand in a Close frame (RFC 6455 section 7.4)? 1004, 1005, 1006 and 1015 are reserved for local use, the
 * rest below 3000 for future standards; 1012 to 1014 are registered with IANA. The same set as in `ws`.
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
