import { goQuote } from "@sluice/client/internal/api/go-json";
import { ERROR_CODE, errorCodeName, fieldOf, type ResponseHead } from "@sluice/protocols/http2";
import { Http2Link, streamErrorText } from "../http2/http2-link.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { DeadlineError, ExchangeError } from "../probe-result.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import type { HttpRequest } from "./http-request.ts";
import { BODY_DEADLINE_TEXT, BodyStart, type HttpReply } from "./http1-response.ts";

/** Go's client retries these on a new connection. */
const RETRYABLE_CODES: ReadonlySet<number> = new Set([ERROR_CODE.REFUSED_STREAM, ERROR_CODE.PROTOCOL_ERROR]);

/**
 * Sends one GET over HTTP/2, by prior knowledge or ALPN, without fallback, and closes the
 * connection. Rejects with ExchangeError or DeadlineError before a status arrives.
 */
export function exchangeHttp2(
  socket: ProbeSocket,
  request: HttpRequest,
  deadline: ProbeDeadline,
): Promise<HttpReply> {
  let start: Uint8Array;
  try {
    start = request.http2Start;
  } catch (error) {
    socket.destroy();
    return Promise.reject(new ExchangeError((error as Error).message));
  }
  return new Promise((resolve, reject) => {
    const body = new BodyStart();
    let head: (ResponseHead & { readonly status: number }) | undefined;
    let goaway: { lastStreamId: number; code: number; debug: string } | undefined;

    const finish = (bodyError?: string, isWhole = false): void => {
      if (head === undefined) return;
      forgetDeadline();
      if (isWhole) link.leave();
      else link.close();
      const location = fieldOf(head.fields, "location");
      resolve({
        status: head.status,
        location,
        body: body.text,
        ...(bodyError === undefined ? {} : { bodyError }),
      });
    };
    const fail = (error: Error): void => {
      if (head !== undefined) {
        finish(error.message);
        return;
      }
      forgetDeadline();
      link.close();
      reject(error);
    };
    const failStream = (reason: string): void =>
      fail(new ExchangeError(streamErrorText(ERROR_CODE.PROTOCOL_ERROR, reason)));
    const link = new Http2Link(socket, {
      onSettings: () => {},
      onHead: ({ status, fields }) => {
        if (status === undefined) failStream("malformed response from server: missing status pseudo header");
        else head = { status, fields };
      },
      onData: (part) => {
        if (head === undefined) failStream("");
        else if (body.push(part)) finish();
      },
      onTrailers: () => {},
      onEnd: () => {
        if (head === undefined) failStream("");
        else finish(undefined, true);
      },
      onReset: (code) =>
        fail(
          new ExchangeError(streamErrorText(code, "received from peer"), {
            isRetryable: RETRYABLE_CODES.has(code),
          }),
        ),
      onGoaway: (lastStreamId, code, debug) => {
        goaway = { lastStreamId, code, debug: Buffer.from(debug).toString() };
        if (lastStreamId < 1) fail(unanswered(code));
      },
      onBroken: (text, isEof) => fail(new ExchangeError(isEof ? endText(goaway) : text)),
    });
    const forgetDeadline = deadline.onOver(() =>
      fail(head === undefined ? new DeadlineError() : new ExchangeError(BODY_DEADLINE_TEXT)),
    );
    link.begin(start);
  });
}

/** The server closed without having processed the request. */
function unanswered(code: number): ExchangeError {
  if (code !== ERROR_CODE.NO_ERROR) {
    return new ExchangeError(`http2: Transport received GOAWAY from server ErrCode:${errorCodeName(code)}`);
  }
  const text = "http2: Transport received Server's graceful shutdown GOAWAY";
  return new ExchangeError(text, { isRetryable: true });
}

function endText(goaway: { lastStreamId: number; code: number; debug: string } | undefined): string {
  if (goaway === undefined) return "unexpected EOF";
  const { lastStreamId, code, debug } = goaway;
  const why = `LastStreamID=${lastStreamId}, ErrCode=${errorCodeName(code)}, debug=${goQuote(debug)}`;
  return `http2: server sent GOAWAY and closed the connection; ${why}`;
}
