export type { FieldLines } from "./field-lines.ts";
export type { Leniency } from "./limits.ts";
export { defaultHttp1Limits, type Http1Limits } from "./limits.ts";
export { MalformedResponse } from "./malformed-response.ts";
export { ResponseDecoder, type ResponseDecoderOptions, type ResponseHandler } from "./response-decoder.ts";
export type { ResponseDelivery, ResponseFraming } from "./response-framing.ts";
export type { ResponseHead } from "./response-head.ts";
export type { TextOf } from "./section-reader.ts";
