export { Base64Decoder, encodeBase64 } from "./base64.ts";
export {
  CHANNEL,
  ChannelDemux,
  type ChannelFraming,
  type ChannelHandler,
  channelByte,
  HIGHEST_CLOSABLE_CHANNEL,
} from "./channel-demux.ts";
export { type Outcome, outcomeOf, statusPayload } from "./outcome.ts";
export { encodeResize, ResizeDecoder, type TerminalSize } from "./resize.ts";
export {
  type CommandStatus,
  decodeStatus,
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  type StatusCause,
  successStatus,
} from "./status.ts";
export { type RequestedStreams, type StreamType, spdyStreamTypes } from "./stream-types.ts";
export {
  CRI_WEBSOCKET_VERSIONS,
  isRemoteCommandVersion,
  REMOTE_COMMAND_VERSIONS,
  type RemoteCommandSpec,
  type RemoteCommandVersion,
  SPDY_VERSIONS,
  specOf,
} from "./versions.ts";
