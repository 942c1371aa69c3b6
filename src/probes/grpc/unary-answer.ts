import { ByteCollector } from "@sluice/protocols/bytes";
import type { HeaderFields, ResponseHead } from "@sluice/protocols/http2";
import {
  type GrpcStatus,
  INTERNAL,
  OK,
  RESOURCE_EXHAUSTED,
  statusIn,
  statusOfForeignAnswer,
  UNKNOWN,
} from "./grpc-status.ts";
import { decodeCheckResponse } from "./health-messages.ts";

/**
 * A gRPC health answer, as in grpc-go; a normal one has two bytes. Past it: Failure,
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

/** Collects the answer to one unary call, in any order and shape. */
export class UnaryAnswer {
  readonly #answer = new ByteCollector();
  #status: GrpcStatus | undefined;

  /** Returns an outcome if the answer is not gRPC. */
  onHead(head: ResponseHead): CheckOutcome | undefined {
    const foreign = statusOfForeignAnswer(head);
    if (foreign !== undefined) return { status: foreign };
    // A trailers-only answer carries its status here.
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

  /** The stream ended; `isByData`: without trailers. */
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
