/**
 * The version in every control frame. We write it but, like moby/spdystream, do not check it:
 * SPDY/3.1 keeps SPDY/3's number.
 */
export const SPDY_VERSION = 3;

export const CONTROL_BIT = 0x80;
export const LOW_31_BITS = 0x7fff_ffff;
export const MAX_STREAM_ID = 0x7fff_ffff;

/** Control and DATA frames share this layout: 4 bytes of type or stream id, 1 of flags, 3 of length. */
export const FRAME_HEADER_BYTES = 8;
export const DATA_HEADER_BYTES = FRAME_HEADER_BYTES;
/** The maximum of a frame's 24-bit length. */
export const MAX_PAYLOAD_BYTES = 0xff_ffff;

export const FRAME_TYPE = {
  SYN_STREAM: 1,
  SYN_REPLY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PING: 6,
  GOAWAY: 7,
  HEADERS: 8,
  WINDOW_UPDATE: 9,
} as const;

export const FLAG = { FIN: 0x01, UNIDIRECTIONAL: 0x02 } as const;

/** Status of an RST_STREAM frame (SPDY/3 section 2.6.3). Kubernetes' peers ignore it. */
export const RST = {
  PROTOCOL_ERROR: 1,
  INVALID_STREAM: 2,
  REFUSED_STREAM: 3,
  UNSUPPORTED_VERSION: 4,
  CANCEL: 5,
  INTERNAL_ERROR: 6,
  FLOW_CONTROL_ERROR: 7,
  STREAM_IN_USE: 8,
  STREAM_ALREADY_CLOSED: 9,
  INVALID_CREDENTIALS: 10,
  FRAME_TOO_LARGE: 11,
} as const;

/** Status of a GOAWAY frame (SPDY/3 section 2.6.6). */
export const GOAWAY = { OK: 0, PROTOCOL_ERROR: 1, INTERNAL_ERROR: 2 } as const;

/** Memory bounds for one SPDY connection. Each is checked before the memory is allocated. */
export interface SpdyLimits {
  /** Payload of a control frame, which must be assembled. Larger: `frame-too-large`, and the session ends. */
  readonly maxControlFrameBytes: number;
  /**
   * Payload of a DATA frame. It is never buffered, so this only bounds how long one stream can
   * occupy the wire.
   */
  readonly maxDataFrameBytes: number;
  /** A header block after inflation, so that a small frame cannot expand without bound (`header-block-too-large`). */
  readonly maxHeaderBlockBytes: number;
  /** Headers of one block (`too-many-headers`). */
  readonly maxHeaders: number;
  /** Entries of one SETTINGS frame (`too-many-settings`). */
  readonly maxSettingsEntries: number;
  /** Concurrent streams in a session. Further streams get RST REFUSED_STREAM; the session continues. */
  readonly maxStreams: number;
}

/**
 * moby/spdystream 0.5.1 allows 16 MiB frames and values of 1 MiB (after CVE-2026-35469; before it
 * had no bounds). Kubernetes really sends one to three headers of a few bytes.
 */
export const defaultSpdyLimits: SpdyLimits = {
  maxControlFrameBytes: 64 * 1024,
  maxDataFrameBytes: MAX_PAYLOAD_BYTES,
  maxHeaderBlockBytes: 64 * 1024,
  maxHeaders: 100,
  maxSettingsEntries: 1000,
  maxStreams: 1000,
};
