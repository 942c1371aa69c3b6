export {
  ClientConnection,
  type ClientConnectionHandler,
} from "./client-connection.ts";
export { DEFAULT_MAX_FRAME_BYTES, FLAGS, FRAME, FRAME_HEADER_BYTES, SETTING } from "./constants.ts";
export { ERROR_CODE, errorCodeName } from "./error-codes.ts";
export { FrameDecoder, type FrameHandler } from "./frame-decoder.ts";
export {
  CLIENT_PREFACE_BYTES,
  concatenated,
  encodeFirstRequest,
  encodeFrame,
  encodeHeaders,
  encodeSettings,
} from "./frame-encoder.ts";
export type { HeaderEntry } from "./hpack/dynamic-table.ts";
export { HeaderDecoder } from "./hpack/header-decoder.ts";
export { encodeHeaderBlock } from "./hpack/header-encoder.ts";
export { Http2Error, type Http2Fault } from "./http2-error.ts";
export { defaultHttp2Limits, type Http2Limits } from "./limits.ts";
export { fieldOf, type HeaderFields, type ResponseHead } from "./response-fields.ts";
