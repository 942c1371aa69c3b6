import { MAX_PAYLOAD_BYTES } from "./constants.ts";

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
