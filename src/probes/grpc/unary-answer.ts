import { STATUS_CODES } from "node:http";
import { goQuote } from "@sluice/client/internal/api/go-json";
import { ByteCollector } from "@sluice/protocols/bytes";
import {
  ERROR_CODE,
  errorCodeName,
  fieldOf,
  type HeaderFields,
  type ResponseHead,
} from "@sluice/protocols/http2";

const OK = 0;
const CANCELED = 1;
const UNKNOWN = 2;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
export const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;
const NO_HTTP_STATUS = "malformed header: missing HTTP status";

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

/**
 * Bytes of a gRPC health answer, as in grpc-go; a normal one has two. Past it: Failure,
 * ResourceExhausted.
 */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

const FRAME_HEADER_BYTES = 5;

/** The serving status's name, or the reason for its absence. */
export type CheckOutcome =
  | { readonly servingStatus: string }
  | { readonly servingStatus?: undefined; readonly status: GrpcStatus };

const NO_TRAILERS = { code: INTERNAL, message: "server closed the stream without sending trailers" };
const NO_STATUS = { code: UNKNOWN, message: "" };

/** Collects the answer to one unary call, whose parts may arrive in any order and shape. */
export class UnaryAnswer {
  readonly #answer = new ByteCollector();
  #status: GrpcStatus | undefined;

  /** Returns an outcome if the answer is not gRPC. */
  onHead(head: ResponseHead): CheckOutcome | undefined {
    const foreign = statusOfForeignAnswer(head);
    if (foreign !== undefined) return { status: foreign };
    // A trailers-only answer has its status here.
    this.#status = statusIn(head.fields);
    return undefined;
  }

  /** Returns an outcome if the answer is too long. Copies the part, which may be overwritten. */
  onData(part: Uint8Array): CheckOutcome | undefined {
    const bytes = this.#answer.byteLength + part.length;
    if (bytes > MAX_MESSAGE_BYTES + FRAME_HEADER_BYTES) return { status: tooLarge(bytes) };
    this.#answer.append(part);
    return undefined;
  }

  onTrailers(fields: HeaderFields): void {
    this.#status ??= statusIn(fields);
  }

  /** The stream ended. `isByData`: it had no trailers. */
  outcome(isByData: boolean): CheckOutcome {
    const status = this.#status ?? (isByData ? NO_TRAILERS : NO_STATUS);
    return status.code === OK ? this.#decode() : { status };
  }

  /** The stream was reset: only a status that already arrived counts. */
  outcomeOfBreak(status: GrpcStatus): CheckOutcome {
    return this.#status === undefined ? { status } : this.outcome(false);
  }

  get hasStatus(): boolean {
    return this.#status !== undefined;
  }

  #decode(): CheckOutcome {
    const { bytes } = this.#answer;
    const answer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (answer.length < FRAME_HEADER_BYTES) {
      const message = "cardinality violation: received no response message from non-server-streaming RPC";
      return { status: { code: INTERNAL, message } };
    }
    if (answer[0] !== 0) {
      const message = "grpc: compressed flag set with identity or empty encoding";
      return { status: { code: INTERNAL, message } };
    }
    const messageBytes = answer.readUInt32BE(1);
    if (messageBytes > MAX_MESSAGE_BYTES) return { status: tooLarge(messageBytes) };
    const message = answer.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + messageBytes);
    if (message.length < messageBytes) return { status: { code: INTERNAL, message: "unexpected EOF" } };
    try {
      return { servingStatus: decodeCheckResponse(message) };
    } catch (error) {
      const text = `grpc: failed to unmarshal the received message: ${(error as Error).message}`;
      return { status: { code: INTERNAL, message: text } };
    }
  }
}

function tooLarge(bytes: number): GrpcStatus {
  return {
    code: RESOURCE_EXHAUSTED,
    message: `grpc: received message larger than max (${bytes} vs. ${MAX_MESSAGE_BYTES})`,
  };
}

export interface GrpcStatus {
  readonly code: number;
  readonly message: string;
}

/** The status in trailers, or in a trailers-only response's headers; undefined if there is none. */
function statusIn(fields: HeaderFields): GrpcStatus | undefined {
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

/**
 * A status for a response that is not gRPC; undefined for one that is. The code follows from HTTP's
 * (gRPC's http-grpc-status-mapping).
 */
function statusOfForeignAnswer({ status: httpStatus, fields }: ResponseHead): GrpcStatus | undefined {
  const contentType = fieldOf(fields, "content-type");
  const isGrpc = contentType !== undefined && /^application\/grpc(?:[+;]|$)/i.test(contentType);
  if (isGrpc && (httpStatus === 200 || fieldOf(fields, "grpc-status") !== undefined)) return undefined;
  if (isGrpc && httpStatus === undefined) return { code: INTERNAL, message: NO_HTTP_STATUS };
  const status =
    httpStatus === undefined
      ? NO_HTTP_STATUS
      : `unexpected HTTP status code received from server: ${httpStatus} (${STATUS_CODES[httpStatus] ?? ""})`;
  const code = httpStatus === undefined ? INTERNAL : (codeOfHttpStatus.get(httpStatus) ?? UNKNOWN);
  if (isGrpc) return { code, message: status };
  const reason =
    contentType !== undefined
      ? `transport: received unexpected content-type ${goQuote(contentType)}`
      : "malformed header: missing HTTP content-type";
  return { code, message: `${status}; ${reason}` };
}

export function statusOfReset(rstCode: number): GrpcStatus {
  return {
    code: codeOfReset.get(rstCode) ?? INTERNAL,
    message: `stream terminated by RST_STREAM with error code: ${errorCodeName(rstCode)}`,
  };
}

/** grpc-message is percent-encoded UTF-8; text that cannot be decoded stays unchanged. */
function percentDecoded(message: string): string {
  if (message === "") return message;
  const bytes = message.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString();
}

/** grpc.health.v1.HealthCheckResponse.ServingStatus by number. */
const SERVING_STATUSES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;

// field 1, length-delimited
const STATUS_FIELD = 1;

const MAX_VARINT_BYTES = 10;

/**
 * The status's name, or its number if the enumeration does not define it. Throws Error for bytes
 * that are not such a message.
 */
function decodeCheckResponse(message: Buffer): string {
  let status = 0n;
  for (let at = 0; at < message.length; ) {
    const tag = readVarint(message, at);
    const field = Number(tag.value >> 3n);
    at = tag.end;
    switch (Number(tag.value & 7n)) {
      case 0: {
        const { value, end } = readVarint(message, at);
        if (field === STATUS_FIELD) status = value;
        at = end;
        break;
      }
      case 1:
        at += 8;
        break;
      case 2: {
        const { value, end } = readVarint(message, at);
        at = end + Number(value);
        break;
      }
      case 5:
        at += 4;
        break;
      default:
        throw new Error("proto: cannot parse invalid wire-format data");
    }
    if (at > message.length) throw new Error("proto: cannot parse invalid wire-format data");
  }
  const number = BigInt.asIntN(32, status);
  return SERVING_STATUSES[Number(number)] ?? String(number);
}

function readVarint(bytes: Buffer, start: number): { value: bigint; end: number } {
  let value = 0n;
  for (let at = start; at < bytes.length && at < start + MAX_VARINT_BYTES; at++) {
    const byte = bytes[at] as number;
    value |= BigInt(byte & 0x7f) << BigInt(7 * (at - start));
    if (byte < 0x80) return { value, end: at + 1 };
  }
  throw new Error("proto: cannot parse invalid wire-format data");
}
