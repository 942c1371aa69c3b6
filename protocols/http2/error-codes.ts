/** RFC 9113 section 7. */
export const ERROR_CODE = {
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
} as const;

const NAMES = Object.keys(ERROR_CODE);

/** `REFUSED_STREAM`; unknown codes keep their number. */
export function errorCodeName(code: number): string {
  return NAMES[code] ?? `unknown error code 0x${code.toString(16)}`;
}
