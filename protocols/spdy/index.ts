export {
  DATA_HEADER_BYTES,
  FLAG,
  FRAME_HEADER_BYTES,
  FRAME_TYPE,
  GOAWAY,
  MAX_PAYLOAD_BYTES,
  RST,
} from "./constants.ts";
export type { HeaderBlocks } from "./control-frame-decoder.ts";
export { FrameDecoder, type FrameHandler } from "./frame-decoder.ts";
export { FrameEncoder, writeDataHeader } from "./frame-encoder.ts";
export { FrameSplitter, type FrameSplitterHandler } from "./frame-splitter.ts";
export type { ControlFrame } from "./frames/control-frame.ts";
export { encodeGoAway, type GoAwayFrame } from "./frames/go-away.ts";
export type { HeadersFrame } from "./frames/headers.ts";
export { encodePing, type PingFrame } from "./frames/ping.ts";
export { encodeRstStream, type RstStreamFrame } from "./frames/rst-stream.ts";
export type { SettingsEntry, SettingsFrame } from "./frames/settings.ts";
export type { SynReplyFrame } from "./frames/syn-reply.ts";
export type { SynStreamFrame } from "./frames/syn-stream.ts";
export type { WindowUpdateFrame } from "./frames/window-update.ts";
export type { SpdyHeaders } from "./header-block.ts";
export { HeartbeatFilter, type HeartbeatFilterHandler } from "./heartbeat-filter.ts";
export { defaultSpdyLimits, type SpdyLimits } from "./limits.ts";
export { SpdySession, type SpdySessionHandler } from "./session.ts";
export type { SpdyStream, SpdyStreamHandler, StreamEnd } from "./stream.ts";
