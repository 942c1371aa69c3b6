import { readUint16, readUint32 } from "../bytes/index.ts";
import { ERROR_CODE, Http2Error } from "./http2-error.ts";
import { DEFAULT_MAX_FRAME_BYTES, DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES, SETTING } from "./limits.ts";

/** The server's SETTINGS that affect a client with small frames and uncompressed headers. */
interface PeerSettings {
  readonly initialWindowBytes: number;
  readonly maxConcurrentStreams: number;
}

export const defaultPeerSettings: PeerSettings = {
  initialWindowBytes: DEFAULT_WINDOW_BYTES,
  maxConcurrentStreams: Number.POSITIVE_INFINITY,
};

/** Applies a SETTINGS payload to earlier settings. Throws Http2Error (RFC 9113 section 6.5). */
export function withSettings(before: PeerSettings, payload: Uint8Array): PeerSettings {
  if (payload.length % 6 !== 0) {
    throw new Http2Error("connection", ERROR_CODE.FRAME_SIZE_ERROR, "SETTINGS of a wrong length");
  }
  let { initialWindowBytes, maxConcurrentStreams } = before;
  for (let at = 0; at < payload.length; at += 6) {
    const value = readUint32(payload, at + 2);
    switch (readUint16(payload, at)) {
      case SETTING.ENABLE_PUSH:
        if (value > 1) throw invalid(ERROR_CODE.PROTOCOL_ERROR);
        break;
      case SETTING.MAX_CONCURRENT_STREAMS:
        maxConcurrentStreams = value;
        break;
      case SETTING.INITIAL_WINDOW_SIZE:
        if (value > MAX_WINDOW_BYTES) throw invalid(ERROR_CODE.FLOW_CONTROL_ERROR);
        initialWindowBytes = value;
        break;
      case SETTING.MAX_FRAME_SIZE:
        if (value < DEFAULT_MAX_FRAME_BYTES || value > 0xff_ffff) throw invalid(ERROR_CODE.PROTOCOL_ERROR);
        break;
    }
  }
  return { initialWindowBytes, maxConcurrentStreams };
}

function invalid(code: number): Http2Error {
  return new Http2Error("connection", code, "an invalid value in SETTINGS");
}
