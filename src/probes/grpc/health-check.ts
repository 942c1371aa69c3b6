import { goQuote } from "@sluice/client/internal/api/go-json";
import { ERROR_CODE, errorCodeName } from "@sluice/protocols/http2";
import { Http2Link, type Http2LinkHandler } from "../http2/http2-link.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { DeadlineError } from "../probe-result.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import type { CheckRequest } from "./check-request.ts";
import {
  type CheckOutcome,
  type GrpcStatus,
  statusOfReset,
  UNAVAILABLE,
  UnaryAnswer,
} from "./unary-answer.ts";

const DRAINING_TEXT = "the connection is draining";

/** Learns whether the server speaks HTTP/2, and if not, why. */
interface ConnectionHearer {
  onConnected(): void;
  onUnconnected(reason: string): void;
}

/**
 * Makes one unary grpc.health.v1.Health/Check call on a new connection, and closes it. Connected
 * means that SETTINGS arrived. grpc-go sends the call after them, we send it with the preface (RFC
 * 9113 section 3.4). Undefined if the server has not shown that it speaks HTTP/2, so that the
 * caller may retry. Rejects with DeadlineError only.
 */
export function checkHealth(
  socket: ProbeSocket,
  request: CheckRequest,
  deadline: ProbeDeadline,
  hearer: ConnectionHearer,
): Promise<CheckOutcome | undefined> {
  return new Promise((resolve, reject) => {
    const call = new HealthCall(socket, request, deadline, hearer, (outcome) => {
      forgetDeadline();
      resolve(outcome);
    });
    const forgetDeadline = deadline.onOver(() => {
      call.close();
      reject(new DeadlineError());
    });
    call.start();
  });
}

class HealthCall implements Http2LinkHandler {
  readonly #request: CheckRequest;
  readonly #deadline: ProbeDeadline;
  readonly #hearer: ConnectionHearer;
  readonly #onOutcome: (outcome: CheckOutcome | undefined) => void;
  readonly #link: Http2Link;
  #answer: UnaryAnswer | undefined;
  #calls = 0;
  #isConnected = false;
  #goaway: string | undefined;

  constructor(
    socket: ProbeSocket,
    request: CheckRequest,
    deadline: ProbeDeadline,
    hearer: ConnectionHearer,
    onOutcome: (outcome: CheckOutcome | undefined) => void,
  ) {
    this.#request = request;
    this.#deadline = deadline;
    this.#hearer = hearer;
    this.#onOutcome = onOutcome;
    this.#link = new Http2Link(socket, this);
  }

  start(): void {
    this.#call();
    this.#link.flush();
  }

  close(): void {
    this.#link.close();
  }

  onSettings(): void {
    // The server may announce that it does not accept streams yet, after the call was sent.
    const isClosed = this.#link.maxConcurrentStreams === 0;
    if (this.#isConnected) {
      if (this.#calls === 0 && !isClosed) this.#call();
      return;
    }
    this.#isConnected = true;
    this.#hearer.onConnected();
    if (!isClosed) return;
    this.#link.forget();
    this.#answer = undefined;
    this.#calls = 0;
  }

  onHead(head: Parameters<UnaryAnswer["onHead"]>[0]): void {
    const outcome = this.#answer?.onHead(head);
    if (outcome !== undefined) this.#settle(outcome);
  }

  onData(part: Parameters<UnaryAnswer["onData"]>[0]): void {
    const outcome = this.#answer?.onData(part);
    if (outcome !== undefined) this.#settle(outcome);
  }

  onTrailers(fields: Parameters<UnaryAnswer["onTrailers"]>[0]): void {
    this.#answer?.onTrailers(fields);
  }

  onEnd(isByData: boolean): void {
    if (this.#answer !== undefined) this.#settle(this.#answer.outcome(isByData), true);
  }

  onReset(code: number): void {
    const isUntouched =
      code === ERROR_CODE.REFUSED_STREAM && this.#answer?.hasStatus === false && this.#goaway === undefined;
    // Like grpc-go, retries once if the server certainly did not process the call.
    if (isUntouched && this.#calls === 1) this.#call();
    else this.#broken(statusOfReset(code));
  }

  onGoaway(lastStreamId: number, code: number, debug: Uint8Array): void {
    const said = debug.length === 0 ? "" : `, debug data: ${goQuote(Buffer.from(debug).toString())}`;
    this.#goaway = `code: ${errorCodeName(code)}${said}`;
    if (this.#calls === 0 || lastStreamId < this.#link.nextStreamId - 2)
      this.#broken({ code: UNAVAILABLE, message: DRAINING_TEXT });
  }

  onBroken(text: string): void {
    if (!this.#isConnected) {
      this.#hearer.onUnconnected(text);
      this.#settle(undefined);
      return;
    }
    const reason = `error reading from server: ${text}`;
    const message = this.#goaway === undefined ? reason : closedText(reason, this.#goaway);
    this.#broken({ code: UNAVAILABLE, message });
  }

  #call(): void {
    const link = this.#link;
    this.#calls++;
    this.#answer = new UnaryAnswer();
    const { remainingMs } = this.#deadline;
    const start = link.nextStreamId === 1 ? this.#request.start(remainingMs) : undefined;
    if (start !== undefined) link.begin(start, this.#request.message.length);
    else link.request(this.#request.headers(link.nextStreamId, remainingMs), this.#request.message);
  }

  #broken(status: GrpcStatus): void {
    this.#settle(this.#answer?.outcomeOfBreak(status) ?? { status });
  }

  #settle(outcome: CheckOutcome | undefined, isWhole = false): void {
    if (isWhole) this.#link.leave();
    else this.#link.close();
    this.#onOutcome(outcome);
  }
}

function closedText(reason: string, goaway: string): string {
  return `closing transport due to: connection error: desc = ${goQuote(reason)}, received prior goaway: ${goaway}`;
}
