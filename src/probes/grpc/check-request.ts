import {
  concatenated,
  DEFAULT_MAX_FRAME_BYTES,
  encodeFirstRequest,
  encodeHeaderBlock,
  encodeHeaders,
  type HeaderEntry,
} from "@sluice/protocols/http2";

const CHECK_PATH = "/grpc.health.v1.Health/Check";

/** A call of grpc.health.v1.Health/Check. Caches the bytes that are the same each time. */
export class CheckRequest {
  /** The message in its gRPC frame. */
  readonly message: Uint8Array;
  /** The server's `host:port`. */
  readonly authority: string;
  readonly #block: Uint8Array;
  #start: { readonly timeoutMs: number; readonly bytes: Uint8Array } | undefined;

  constructor(scheme: "http" | "https", authority: string, service: string, userAgent: string) {
    const fields: HeaderEntry[] = [
      [":method", "POST"],
      [":scheme", scheme],
      [":path", CHECK_PATH],
      [":authority", authority],
      ["content-type", "application/grpc"],
      ["user-agent", userAgent],
      ["te", "trailers"],
    ];
    this.authority = authority;
    this.message = encodeCheckRequest(service);
    this.#block = encodeHeaderBlock(fields);
  }

  /** The frames that begin the call; the message ends it. */
  headers(streamId: number, remainingMs: number): Uint8Array {
    return this.#headers(streamId, wholeMs(remainingMs));
  }

  /**
   * All of a connection's first bytes; undefined if the message exceeds a frame. Cached for each
   * remaining millisecond, which is the same for nearly all calls of a probe.
   */
  start(remainingMs: number): Uint8Array | undefined {
    if (this.message.length > DEFAULT_MAX_FRAME_BYTES) return undefined;
    const timeoutMs = wholeMs(remainingMs);
    if (this.#start?.timeoutMs !== timeoutMs) {
      const bytes = encodeFirstRequest(this.#headers(1, timeoutMs), this.message);
      this.#start = { timeoutMs, bytes };
    }
    return this.#start.bytes;
  }

  #headers(streamId: number, timeoutMs: number): Uint8Array {
    const timeout = encodeHeaderBlock([["grpc-timeout", `${timeoutMs}m`]]);
    return encodeHeaders(streamId, concatenated([this.#block, timeout]), false);
  }
}

/** The maximum of grpc-timeout, which has at most eight digits (gRPC over HTTP/2, Timeout). */
const MAX_TIMEOUT_VALUE = 99_999_999;

/**
 * grpc-timeout in its unit `m`. Rounding is harmless, because our own clock ends the call to the
 * microsecond.
 */
function wholeMs(milliseconds: number): number {
  return Math.min(MAX_TIMEOUT_VALUE, Math.max(1, Math.ceil(milliseconds)));
}

const SERVICE_FIELD = 0x0a; // field 1, length-delimited

/** grpc.health.v1.HealthCheckRequest{service} in its gRPC frame: compression flag 0, length, message. */
function encodeCheckRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const message =
    name.length === 0 ? name : Buffer.concat([Buffer.from([SERVICE_FIELD, ...varint(name.length)]), name]);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  return frame;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 0x7f; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return [...bytes, value];
}
