/** RFC 6455 section 5.2. */
export const OPCODE = { CONTINUATION: 0, TEXT: 1, BINARY: 2, CLOSE: 8, PING: 9, PONG: 10 } as const;

/** RFC 6455 section 5.5. */
export const MAX_CONTROL_PAYLOAD_BYTES = 125;

/** Two bytes, a 64-bit length, a masking key. */
export const MAX_FRAME_HEADER_BYTES = 14;

/** Close code of a Close frame without a payload; never on the wire (section 7.1.5). */
export const CLOSE_NO_STATUS = 1005;
