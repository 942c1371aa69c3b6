import { type ClientHttp2Stream, constants } from "node:http2";
import { brokenText, DeadlineError } from "../exchange-error.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import type { GrpcConnection } from "./grpc-connection.ts";
import {
  type GrpcStatus,
  INTERNAL,
  OK,
  RESOURCE_EXHAUSTED,
  statusIn,
  statusOfForeignAnswer,
  statusOfReset,
  UNAVAILABLE,
} from "./grpc-status.ts";
import { decodeCheckResponse, encodeCheckRequest } from "./health-messages.ts";

const CHECK_PATH = "/grpc.health.v1.Health/Check";

/** What grpc-go takes for one message. The answer is two bytes long. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

const FRAME_HEADER_BYTES = 5;
const DRAINING_TEXT = "the connection is draining";

/** The serving status's name, or why there is none. */
export type CheckOutcome =
  | { readonly servingStatus: string }
  | { readonly servingStatus?: undefined; readonly status: GrpcStatus };

export interface CheckRequest {
  readonly authority: string;
  readonly service: string;
  readonly userAgent: string;
}

/** One unary grpc.health.v1.Health/Check. Rejects with DeadlineError only; the connection stays the caller's. */
export async function checkHealth(
  connection: GrpcConnection,
  request: CheckRequest,
  deadline: ProbeDeadline,
): Promise<CheckOutcome> {
  const first = await callOnce(connection, request, deadline);
  // What a server certainly did not process, grpc-go sends once more.
  return first === "refused" ? ofSecondCall(await callOnce(connection, request, deadline)) : first;
}

function ofSecondCall(outcome: CheckOutcome | "refused"): CheckOutcome {
  if (outcome !== "refused") return outcome;
  return { status: statusOfReset(constants.NGHTTP2_REFUSED_STREAM) };
}

function callOnce(
  connection: GrpcConnection,
  request: CheckRequest,
  deadline: ProbeDeadline,
): Promise<CheckOutcome | "refused"> {
  return new Promise((resolve, reject) => {
    const { session } = connection;
    if (session.closed || session.destroyed) {
      resolve({ status: { code: UNAVAILABLE, message: DRAINING_TEXT } });
      return;
    }
    const call = new UnaryCall(connection);
    const forgetDeadline = deadline.onOver(() => reject(new DeadlineError()));
    const settle = (outcome: CheckOutcome | "refused"): void => {
      forgetDeadline();
      resolve(outcome);
    };
    session.on("goaway", () => {
      call.isDraining = true;
    });
    const stream = session.request({
      ":method": "POST",
      ":path": CHECK_PATH,
      ":authority": request.authority,
      "content-type": "application/grpc",
      te: "trailers",
      "user-agent": request.userAgent,
      "grpc-timeout": `${Math.max(1, Math.ceil(deadline.remainingMs * 1_000))}u`,
    });
    call.follow(stream, settle);
    stream.end(encodeCheckRequest(request.service));
  });
}

/** Collects what a unary call is answered with, in whatever order and shape it comes. */
class UnaryCall {
  readonly #connection: GrpcConnection;
  #parts: Buffer[] = [];
  #bytes = 0;
  #status: GrpcStatus | undefined;
  isDraining = false;

  constructor(connection: GrpcConnection) {
    this.#connection = connection;
  }

  follow(stream: ClientHttp2Stream, settle: (outcome: CheckOutcome | "refused") => void): void {
    stream.on("response", (headers) => {
      const foreign = statusOfForeignAnswer(headers);
      // Trailers-only answers carry their status here.
      this.#status = foreign ?? statusIn(headers);
      if (foreign !== undefined) settle({ status: foreign });
    });
    stream.on("trailers", (trailers) => {
      this.#status ??= statusIn(trailers);
    });
    stream.on("data", (chunk: Buffer) => {
      this.#bytes += chunk.length;
      if (this.#bytes <= MAX_MESSAGE_BYTES) this.#parts.push(chunk);
      else settle({ status: tooLarge(this.#bytes) });
    });
    stream.on("error", () => {});
    stream.on("close", () => settle(this.#outcome(stream.rstCode)));
  }

  #outcome(rstCode: number): CheckOutcome | "refused" {
    const isRefused = rstCode === constants.NGHTTP2_REFUSED_STREAM && !this.isDraining;
    if (this.#status === undefined && isRefused) return "refused";
    const status = this.#status ?? this.#statusOfEnd(rstCode);
    if (status.code !== OK) return { status };
    return this.#decode();
  }

  /** The stream ended without a status. */
  #statusOfEnd(rstCode: number): GrpcStatus {
    const { socket, error } = this.#connection;
    const broken = error();
    if (broken !== undefined) {
      return {
        code: UNAVAILABLE,
        message: `error reading from server: ${brokenText(broken, socket)}`,
      };
    }
    if (this.isDraining) return { code: UNAVAILABLE, message: DRAINING_TEXT };
    if (socket.destroyed || socket.readableEnded) {
      return { code: UNAVAILABLE, message: "error reading from server: EOF" };
    }
    return statusOfReset(rstCode);
  }

  #decode(): CheckOutcome {
    const answer = Buffer.concat(this.#parts);
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
