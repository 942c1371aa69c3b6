import { MAX_PAYLOAD_BYTES } from "./constants.ts";

/** What one SPDY connection may make us hold. Every bound is checked before the memory it guards is taken. */
export interface SpdyLimits {
  /** Payload of a control frame, which has to be assembled. Beyond it: `frame-too-large`, the session is over. */
  readonly maxControlFrameBytes: number;
  /** Payload of a DATA frame. It is passed on in parts and never held, so this only bounds how long one stream has the wire. */
  readonly maxDataFrameBytes: number;
  /** A header block after inflation, so that a small frame cannot expand without bound (`header-block-too-large`). */
  readonly maxHeaderBlockBytes: number;
  /** Headers of one block (`too-many-headers`). */
  readonly maxHeaders: number;
  /** Entries of one SETTINGS frame (`too-many-settings`). */
  readonly maxSettingsEntries: number;
  /** Streams open at once in a session. A stream beyond it is refused with RST REFUSED_STREAM; the session goes on. */
  readonly maxStreams: number;
}

/**
 * moby/spdystream 0.5.1 allows 16 MiB frames and values of 1 MiB (after CVE-2026-35469; before it had no bounds). What
 * Kubernetes really sends are one or three headers of a few bytes.
 */
export const defaultSpdyLimits: SpdyLimits = {
  maxControlFrameBytes: 64 * 1024,
  maxDataFrameBytes: MAX_PAYLOAD_BYTES,
  maxHeaderBlockBytes: 64 * 1024,
  maxHeaders: 100,
  maxSettingsEntries: 1000,
  maxStreams: 1000,
};
