export { DATA_HEADER_BYTES, defaultSpdyLimits, GOAWAY, RST, type SpdyLimits } from "./constants.ts";
export type { HeaderBlocks } from "./frame-decoder.ts";
export { FrameDecoder, type FrameHandler } from "./frame-decoder.ts";
export { FrameEncoder, writeDataHeader } from "./frame-encoder.ts";
export { FrameSplitter, type FrameSplitterHandler } from "./frame-splitter.ts";
export type { ControlFrame } from "./frames/control-frame.ts";
export type { SettingsEntry, SettingsFrame } from "./frames/session-frames.ts";
export { encodeGoAway, encodePing, type GoAwayFrame, type PingFrame } from "./frames/session-frames.ts";
export type {
  HeadersFrame,
  SynReplyFrame,
  SynStreamFrame,
  WindowUpdateFrame,
} from "./frames/stream-frames.ts";
export { encodeRstStream, type RstStreamFrame } from "./frames/stream-frames.ts";
export type { SpdyHeaders } from "./header-block.ts";
export { HeartbeatFilter, type HeartbeatFilterHandler } from "./heartbeat-filter.ts";
export { SpdySession, type SpdySessionHandler } from "./session.ts";
export type { SpdyStream, SpdyStreamHandler, StreamEnd } from "./stream.ts";
