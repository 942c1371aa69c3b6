export { ClientConnection, type ClientConnectionHandler } from "./client-connection.ts";
export { FrameDecoder, type FrameHandler } from "./frame-decoder.ts";
export {
  CLIENT_PREFACE_BYTES,
  concatenated,
  encodeFirstRequest,
  encodeFrame,
  encodeHeaders,
} from "./frame-encoder.ts";
export type { HeaderEntry } from "./hpack/dynamic-table.ts";
export { encodeHeaderBlock } from "./hpack/header-encoder.ts";
export { ERROR_CODE, errorCodeName, Http2Error, type Http2Fault } from "./http2-error.ts";
export { DEFAULT_MAX_FRAME_BYTES, FRAME } from "./limits.ts";
export { fieldOf, type HeaderFields, type ResponseHead } from "./response-fields.ts";
