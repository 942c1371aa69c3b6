export {
  Base64Decoder,
  CHANNEL,
  ChannelDemux,
  type ChannelFraming,
  type ChannelHandler,
  channelByte,
  encodeBase64,
} from "./channel-demux.ts";
export {
  type CommandStatus,
  decodeStatus,
  encodeStatus,
  exitCodeStatus,
  internalErrorStatus,
  type Outcome,
  outcomeOf,
  type StatusCause,
  statusPayload,
  successStatus,
} from "./outcome.ts";
export { encodeResize, ResizeDecoder, type TerminalSize } from "./resize.ts";
export {
  CRI_WEBSOCKET_VERSIONS,
  isRemoteCommandVersion,
  REMOTE_COMMAND_VERSIONS,
  type RemoteCommandSpec,
  type RemoteCommandVersion,
  type RequestedStreams,
  SPDY_VERSIONS,
  type StreamType,
  spdyStreamTypes,
  specOf,
} from "./versions.ts";
