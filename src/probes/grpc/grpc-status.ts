import { STATUS_CODES } from "node:http";
import { goQuote } from "@sluice/client/internal/api/go-json";
import {
  ERROR_CODE,
  errorCodeName,
  fieldOf,
  type HeaderFields,
  type ResponseHead,
} from "@sluice/protocols/http2";
import { GRPC_CODE_NAMES } from "../../cri/runtime-error.ts";

export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}

export const OK = 0;
const CANCELED = 1;
export const UNKNOWN = 2;
export const DEADLINE_EXCEEDED = 4;
const PERMISSION_DENIED = 7;
export const RESOURCE_EXHAUSTED = 8;
export const UNIMPLEMENTED = 12;
export const INTERNAL = 13;
export const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

export function grpcCodeName(code: number): string {
  return GRPC_CODE_NAMES[code] ?? `Code(${code})`;
}

/** `rpc error: code = NotFound desc = unknown service`. */
export function grpcErrorText({ code, message }: GrpcStatus): string {
  return `rpc error: code = ${grpcCodeName(code)} desc = ${message}`;
}

/** The status in trailers, or in a trailers-only response's headers; undefined if there is none. */
export function statusIn(fields: HeaderFields): GrpcStatus | undefined {
  const code = fieldOf(fields, "grpc-status");
  if (code === undefined) return undefined;
  if (!/^[0-9]{1,9}$/.test(code)) {
    return {
      code: UNKNOWN,
      message: `transport: malformed grpc-status: strconv.ParseInt: parsing ${goQuote(code)}: invalid syntax`,
    };
  }
  return { code: Number(code), message: percentDecoded(fieldOf(fields, "grpc-message") ?? "") };
}

const NO_STATUS = "malformed header: missing HTTP status";

/**
 * A status for a response that is not gRPC; undefined for one that is. The code follows from HTTP's
 * (gRPC's http-grpc-status-mapping).
 */
export function statusOfForeignAnswer({ status: httpStatus, fields }: ResponseHead): GrpcStatus | undefined {
  const contentType = fieldOf(fields, "content-type");
  const isGrpc = contentType !== undefined && /^application\/grpc(?:[+;]|$)/i.test(contentType);
  if (isGrpc && (httpStatus === 200 || fieldOf(fields, "grpc-status") !== undefined)) return undefined;
  if (isGrpc && httpStatus === undefined) return { code: INTERNAL, message: NO_STATUS };
  const status =
    httpStatus === undefined
      ? NO_STATUS
      : `unexpected HTTP status code received from server: ${httpStatus} (${STATUS_CODES[httpStatus] ?? ""})`;
  const code = httpStatus === undefined ? INTERNAL : (codeOfHttpStatus.get(httpStatus) ?? UNKNOWN);
  if (isGrpc) return { code, message: status };
  const reason =
    contentType !== undefined
      ? `transport: received unexpected content-type ${goQuote(contentType)}`
      : "malformed header: missing HTTP content-type";
  return { code, message: `${status}; ${reason}` };
}

const codeOfHttpStatus: ReadonlyMap<number, number> = new Map([
  [400, INTERNAL],
  [401, UNAUTHENTICATED],
  [403, PERMISSION_DENIED],
  [404, UNIMPLEMENTED],
  [429, UNAVAILABLE],
  [502, UNAVAILABLE],
  [503, UNAVAILABLE],
  [504, UNAVAILABLE],
]);

const codeOfReset: ReadonlyMap<number, number> = new Map<number, number>([
  [ERROR_CODE.REFUSED_STREAM, UNAVAILABLE],
  [ERROR_CODE.CANCEL, CANCELED],
  [ERROR_CODE.ENHANCE_YOUR_CALM, RESOURCE_EXHAUSTED],
  [ERROR_CODE.INADEQUATE_SECURITY, PERMISSION_DENIED],
]);

export function statusOfReset(rstCode: number): GrpcStatus {
  return {
    code: codeOfReset.get(rstCode) ?? INTERNAL,
    message: `stream terminated by RST_STREAM with error code: ${errorCodeName(rstCode)}`,
  };
}

/** grpc-message is percent-encoded UTF-8; text that does not decode stays as it is. */
function percentDecoded(message: string): string {
  if (message === "") return message;
  const bytes = message.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString();
}
