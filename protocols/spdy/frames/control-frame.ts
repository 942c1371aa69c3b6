import { ProtocolError } from "../../protocol-error.ts";
import { FRAME_TYPE, type SpdyLimits } from "../constants.ts";
import type { ControlFrameType } from "./control-layout.ts";
import {
  GOAWAY_BYTES,
  type GoAwayFrame,
  PING_BYTES,
  type PingFrame,
  SETTINGS_FIXED_BYTES,
  type SettingsFrame,
} from "./session-frames.ts";
import {
  HEADERS_FIXED_BYTES,
  type HeadersFrame,
  RST_STREAM_BYTES,
  type RstStreamFrame,
  SYN_REPLY_FIXED_BYTES,
  SYN_STREAM_FIXED_BYTES,
  type SynReplyFrame,
  type SynStreamFrame,
  WINDOW_UPDATE_BYTES,
  type WindowUpdateFrame,
} from "./stream-frames.ts";

export type ControlFrame =
  | SynStreamFrame
  | SynReplyFrame
  | RstStreamFrame
  | SettingsFrame
  | PingFrame
  | GoAwayFrame
  | HeadersFrame
  | WindowUpdateFrame;

/** The exact or minimum payload length of each type. */
const PAYLOAD_BYTES: ReadonlyMap<number, { bytes: number; isExact: boolean; name: ControlFrame["type"] }> =
  new Map([
    [FRAME_TYPE.SYN_STREAM, { bytes: SYN_STREAM_FIXED_BYTES, isExact: false, name: "SYN_STREAM" }],
    [FRAME_TYPE.SYN_REPLY, { bytes: SYN_REPLY_FIXED_BYTES, isExact: false, name: "SYN_REPLY" }],
    [FRAME_TYPE.RST_STREAM, { bytes: RST_STREAM_BYTES, isExact: true, name: "RST_STREAM" }],
    [FRAME_TYPE.SETTINGS, { bytes: SETTINGS_FIXED_BYTES, isExact: false, name: "SETTINGS" }],
    [FRAME_TYPE.PING, { bytes: PING_BYTES, isExact: true, name: "PING" }],
    [FRAME_TYPE.GOAWAY, { bytes: GOAWAY_BYTES, isExact: true, name: "GOAWAY" }],
    [FRAME_TYPE.HEADERS, { bytes: HEADERS_FIXED_BYTES, isExact: false, name: "HEADERS" }],
    [FRAME_TYPE.WINDOW_UPDATE, { bytes: WINDOW_UPDATE_BYTES, isExact: true, name: "WINDOW_UPDATE" }],
  ]);

/** Checks a control frame's header before anything is allocated for its payload. */
export function checkControlHeader(type: number, payloadBytes: number, limits: SpdyLimits): ControlFrameType {
  const expected = PAYLOAD_BYTES.get(type);
  // spdystream also ends the session over NOOP (5) and CREDENTIAL (10).
  if (expected === undefined) throw new ProtocolError("malformed-frame", `a control frame of type ${type}`);
  if (payloadBytes > limits.maxControlFrameBytes) {
    throw new ProtocolError("frame-too-large", `${expected.name} of ${payloadBytes} bytes`);
  }
  if (payloadBytes < expected.bytes || (expected.isExact && payloadBytes !== expected.bytes)) {
    throw new ProtocolError("malformed-frame", `${expected.name} of ${payloadBytes} bytes`);
  }
  return type as ControlFrameType;
}
