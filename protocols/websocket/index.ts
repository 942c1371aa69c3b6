export {
  type BearerSubprotocol,
  bearerSubprotocol,
  parseBearerSubprotocol,
  withoutBearerSubprotocols,
} from "./bearer-subprotocol.ts";
export {
  type ClientHandshake,
  type ClientOffer,
  checkClientHandshake,
  type HandshakeFailure,
  type HandshakeResponse,
  upgradeFailureText,
} from "./client-handshake.ts";
export {
  CLOSE,
  closeCodeOf,
  encodeClose,
  encodeControlFrame,
  NO_CLOSE_CODE,
} from "./control-frame.ts";
export {
  defaultWebSocketLimits,
  WebSocketFrameDecoder,
  type WebSocketFrameHandler,
  type WebSocketLimits,
  type WebSocketRole,
} from "./frame-decoder.ts";
export {
  applyMask,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "./frame-header.ts";
export { type FrameWalkerHandler, WebSocketFrameWalker } from "./frame-walker.ts";
export { firstHeaderValue, type HeaderLines, headerValues, tokenList } from "./header-lines.ts";
export {
  ACCEPT_GUID,
  checkServerHandshake,
  encodeSwitchingProtocols,
  FORBIDDEN_RESPONSE,
  type HandshakeRequest,
  hasWebSocketTokens,
  isWebSocketUpgrade,
  negotiateSubprotocol,
  offeredSubprotocols,
  type ServerHandshake,
} from "./server-handshake.ts";
