import { goQuote } from "@sluice/client/internal/api/go-json";
import { ERROR_CODE, errorCodeName } from "@sluice/protocols/http2";
import { DeadlineError } from "../exchange-error.ts";
import { Http2Link } from "../http2/http2-link.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import type { CheckRequest } from "./check-request.ts";
import { statusOfReset, UNAVAILABLE } from "./grpc-status.ts";
import { type CheckOutcome, UnaryAnswer } from "./unary-answer.ts";

const DRAINING_TEXT = "the connection is draining";

/** The server has not shown that it speaks HTTP/2, so the caller may retry. */
export const NOT_CONNECTED = "not connected";

/** Hears whether the server speaks HTTP/2, and why not. */
interface ConnectionHearer {
  onConnected(): void;
  onUnconnected(reason: string): void;
}

/**
 * One unary grpc.health.v1.Health/Check on a new connection, which is then closed. Connected means that SETTINGS
 * arrived. grpc-go sends the call after them, we send it with the preface (RFC 9113 section 3.4). Rejects with
 * DeadlineError only.
 */
export function checkHealth(
  socket: ProbeSocket,
  request: CheckRequest,
  deadline: ProbeDeadline,
  { onConnected, onUnconnected }: ConnectionHearer,
): Promise<CheckOutcome | typeof NOT_CONNECTED> {
  return new Promise((resolve, reject) => {
    let answer: UnaryAnswer | undefined;
    let calls = 0;
    let isConnected = false;
    let goaway: string | undefined;

    const settle = (outcome: CheckOutcome | typeof NOT_CONNECTED, isWhole = false): void => {
      forgetDeadline();
      if (isWhole) link.leave();
      else link.close();
      resolve(outcome);
    };
    const breakOff = (message: string): void => {
      const status = { code: UNAVAILABLE, message };
      settle(answer?.outcomeOfBreak(status) ?? { status });
    };
    const call = (): void => {
      calls++;
      answer = new UnaryAnswer();
      const { remainingMs } = deadline;
      const start = link.nextStreamId === 1 ? request.start(remainingMs) : undefined;
      if (start !== undefined) link.begin(start, request.message.length);
      else link.request(request.headers(link.nextStreamId, remainingMs), request.message);
    };
    const link = new Http2Link(socket, {
      onSettings: () => {
        // The server may announce that it accepts no streams yet; the call was sent before that.
        const isClosed = link.maxConcurrentStreams === 0;
        if (isConnected) {
          if (calls === 0 && !isClosed) call();
          return;
        }
        isConnected = true;
        onConnected();
        if (!isClosed) return;
        link.forget();
        answer = undefined;
        calls = 0;
      },
      onHead: (head) => {
        const outcome = answer?.onHead(head);
        if (outcome !== undefined) settle(outcome);
      },
      onData: (part) => {
        const outcome = answer?.onData(part);
        if (outcome !== undefined) settle(outcome);
      },
      onTrailers: (fields) => answer?.onTrailers(fields),
      onEnd: (isByData) => {
        if (answer !== undefined) settle(answer.outcome(isByData), true);
      },
      onReset: (code) => {
        const isUntouched =
          code === ERROR_CODE.REFUSED_STREAM && answer?.hasStatus === false && goaway === undefined;
        // Like grpc-go, retries once if the server certainly did not process the call.
        if (isUntouched && calls === 1) call();
        else settle(answer?.outcomeOfBreak(statusOfReset(code)) ?? { status: statusOfReset(code) });
      },
      onGoaway: (lastStreamId, code, debug) => {
        const said = debug.length === 0 ? "" : `, debug data: ${goQuote(Buffer.from(debug).toString())}`;
        goaway = `code: ${errorCodeName(code)}${said}`;
        if (calls === 0 || lastStreamId < link.nextStreamId - 2) breakOff(DRAINING_TEXT);
      },
      onBroken: (text) => {
        const reason = `error reading from server: ${text}`;
        if (!isConnected) {
          onUnconnected(text);
          settle(NOT_CONNECTED);
        } else if (goaway === undefined) breakOff(reason);
        else breakOff(closedText(reason, goaway));
      },
    });
    const forgetDeadline = deadline.onOver(() => {
      link.close();
      reject(new DeadlineError());
    });
    call();
    link.flush();
  });
}

function closedText(reason: string, goaway: string): string {
  return `closing transport due to: connection error: desc = ${goQuote(reason)}, received prior goaway: ${goaway}`;
}
