export type { FieldLines, Leniency } from "./field-lines.ts";
export { defaultHttp1Limits, type Http1Limits, MalformedResponse } from "./field-lines.ts";
export { ResponseDecoder, type ResponseDecoderOptions, type ResponseHandler } from "./response-decoder.ts";
export type { ResponseDelivery, ResponseFraming, ResponseHead } from "./response-framing.ts";
export type { TextOf } from "./section-reader.ts";
