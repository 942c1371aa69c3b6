import {
  ERROR_CODE,
  encodeHeaderBlock,
  encodeHeaders,
  errorCodeName,
  type HeaderEntry,
} from "../../../protocols/http2/index.ts";
import { goQuote } from "../../api/go-json.ts";
import { DeadlineError } from "../exchange-error.ts";
import { Http2Link } from "../http2/http2-link.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import { statusOfReset, UNAVAILABLE } from "./grpc-status.ts";
import { encodeCheckRequest } from "./health-messages.ts";
import { type CheckOutcome, UnaryAnswer } from "./unary-answer.ts";

const CHECK_PATH = "/grpc.health.v1.Health/Check";
const DRAINING_TEXT = "the connection is draining";

export interface CheckRequest {
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly service: string;
  readonly userAgent: string;
}

/** The server has not shown that it speaks HTTP/2: whoever connects may try again. */
export const NOT_CONNECTED = "not connected";

/**
 * One unary grpc.health.v1.Health/Check on a new connection, which is closed in the end. Connected means that the server's SETTINGS
 * have come; the call begins then, as grpc-go's does, and `onConnected` is called. Rejects with DeadlineError only.
 */
export function checkHealth(
  socket: ProbeSocket,
  request: CheckRequest,
  deadline: ProbeDeadline,
  onConnected: () => void,
): Promise<CheckOutcome | typeof NOT_CONNECTED> {
  return new Promise((resolve, reject) => {
    let answer: UnaryAnswer | undefined;
    let calls = 0;
    let isConnected = false;
    let goaway: string | undefined;

    const settle = (outcome: CheckOutcome | typeof NOT_CONNECTED): void => {
      forgetDeadline();
      link.close();
      resolve(outcome);
    };
    const breakOff = (message: string): void => {
      const status = { code: UNAVAILABLE, message };
      settle(answer?.outcomeOfBreak(status) ?? { status });
    };
    const call = (): void => {
      calls++;
      answer = new UnaryAnswer();
      const headers = encodeHeaders(link.nextStreamId, headerBlock(request, deadline.remainingMs), false);
      link.request(headers, encodeCheckRequest(request.service));
    };
    const link = new Http2Link(socket, {
      onSettings: () => {
        if (!isConnected) onConnected();
        isConnected = true;
        // A server may say that it takes no streams for now.
        if (calls === 0 && link.maxConcurrentStreams > 0) call();
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
        if (answer !== undefined) settle(answer.outcome(isByData));
      },
      onReset: (code) => {
        const isUntouched =
          code === ERROR_CODE.REFUSED_STREAM && answer?.hasStatus === false && goaway === undefined;
        // What a server certainly did not process, grpc-go sends once more.
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
        if (!isConnected) settle(NOT_CONNECTED);
        else if (goaway === undefined) breakOff(reason);
        else breakOff(closedText(reason, goaway));
      },
    });
    const forgetDeadline = deadline.onOver(() => {
      link.close();
      reject(new DeadlineError());
    });
    link.flush();
  });
}

function closedText(reason: string, goaway: string): string {
  return `closing transport due to: connection error: desc = ${goQuote(reason)}, received prior goaway: ${goaway}`;
}

function headerBlock({ scheme, authority, userAgent }: CheckRequest, remainingMs: number): Uint8Array {
  const fields: HeaderEntry[] = [
    [":method", "POST"],
    [":scheme", scheme],
    [":path", CHECK_PATH],
    [":authority", authority],
    ["content-type", "application/grpc"],
    ["user-agent", userAgent],
    ["te", "trailers"],
    ["grpc-timeout", `${Math.max(1, Math.ceil(remainingMs * 1_000))}u`],
  ];
  return encodeHeaderBlock(fields);
}
