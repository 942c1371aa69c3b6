import { connect, constants, type IncomingHttpHeaders } from "node:http2";
import { goQuote } from "../../api/go-json.ts";
import { DeadlineError, ExchangeError } from "../exchange-error.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import type { HttpRequest } from "./exchange-http1.ts";
import { BODY_DEADLINE_TEXT, BodyStart, type HttpReply } from "./http-reply.ts";
import type { ObservedSocket } from "./observed-socket.ts";

/** These belong to one HTTP/1 connection; Go leaves them out too (RFC 9113 section 8.2.2). */
const NOT_IN_HTTP2 = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/** Go's client tries these again on a new connection. */
const RETRYABLE_CODES = new Set([constants.NGHTTP2_REFUSED_STREAM, constants.NGHTTP2_PROTOCOL_ERROR]);

/**
 * One GET over HTTP/2, on a connection that speaks it from its first byte: there is no way back to HTTP/1. Rejects with
 * ExchangeError or DeadlineError while there is no status yet; the connection is closed.
 */
export function exchangeHttp2(
  connection: ObservedSocket,
  request: HttpRequest,
  deadline: ProbeDeadline,
): Promise<HttpReply> {
  const refusal = headerRefusal(request);
  if (refusal !== undefined) {
    connection.destroy();
    return Promise.reject(new ExchangeError(refusal));
  }
  return new Promise((resolve, reject) => {
    // Preface, SETTINGS and request leave as one write: a server that wants none of it hangs up after the first.
    connection.cork();
    setImmediate(() => connection.uncork());
    const session = connect(`${request.scheme}://probe`, {
      createConnection: () => connection,
      settings: { enablePush: false },
    });
    const body = new BodyStart();
    let reply: { status: number; location: string | undefined } | undefined;
    let goaway: { code: number; lastStreamId: number } | undefined;

    const settle = (): void => {
      forgetDeadline();
      session.destroy();
      connection.destroy();
    };
    const finish = (bodyError?: string): void => {
      if (reply === undefined) return;
      settle();
      resolve({ ...reply, body: body.text, ...(bodyError === undefined ? {} : { bodyError }) });
    };
    const fail = (error: Error): void => {
      if (reply !== undefined) {
        finish(error.message);
        return;
      }
      settle();
      reject(error);
    };
    const forgetDeadline = deadline.onOver(() =>
      fail(reply === undefined ? new DeadlineError() : new ExchangeError(BODY_DEADLINE_TEXT)),
    );
    const brokenOff = (rstCode: number | undefined): ExchangeError => {
      const nothing = connection.brokenText;
      if (goaway !== undefined && goaway.code !== 0) {
        return new ExchangeError(
          `http2: Transport received GOAWAY from server ErrCode:${codeName(goaway.code)}`,
        );
      }
      if (goaway !== undefined && goaway.lastStreamId < 1) {
        return new ExchangeError("http2: Transport received Server's graceful shutdown GOAWAY", {
          isRetryable: true,
        });
      }
      if (nothing !== undefined) return new ExchangeError(nothing);
      if (rstCode === undefined) return new ExchangeError("unexpected EOF");
      return new ExchangeError(`stream error: stream ID 1; ${codeName(rstCode)}; received from peer`, {
        isRetryable: RETRYABLE_CODES.has(rstCode),
      });
    };

    session.on("goaway", (code, lastStreamId) => {
      goaway = { code, lastStreamId };
    });
    // nghttp2 says no more than "Protocol error" for bytes that are no HTTP/2; the connection has seen which.
    session.on("error", () => fail(brokenOff(undefined)));
    session.on("close", () => fail(brokenOff(undefined)));
    const stream = session.request(requestHeaders(request), { endStream: true });
    stream.on("response", (headers: IncomingHttpHeaders & { ":status"?: number }) => {
      reply = { status: headers[":status"] ?? 0, location: headers.location };
    });
    stream.on("data", (chunk: Buffer) => {
      if (body.push(chunk)) finish();
    });
    stream.on("end", () => finish(stream.rstCode === 0 ? undefined : brokenOff(stream.rstCode).message));
    stream.on("error", () => {});
    stream.on("close", () => {
      // A session that ends cancels its streams.
      const isPeers = !session.destroyed && !connection.isEnded;
      fail(brokenOff(isPeers ? stream.rstCode : undefined));
    });
  });
}

function requestHeaders({
  scheme,
  authority,
  requestTarget,
  headers,
}: HttpRequest): Record<string, string | string[]> {
  const lines: Record<string, string | string[]> = {
    ":method": "GET",
    ":scheme": scheme,
    ":authority": authority,
    ":path": requestTarget,
  };
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    if (NOT_IN_HTTP2.has(key)) continue;
    const before = lines[key];
    lines[key] = before === undefined ? value : [...(Array.isArray(before) ? before : [before]), value];
  }
  return lines;
}

/** What Go's HTTP/2 client refuses to send. */
function headerRefusal({ authority, headers }: HttpRequest): string | undefined {
  if (!/^[A-Za-z0-9\-._~!$&'()*+,;=:[\]%]*$/.test(authority)) return "http2: invalid Host header";
  for (const [name, value] of headers) {
    if (name === "Upgrade" && value !== "" && value !== "chunked") {
      return `http2: invalid Upgrade request header: [${goQuote(value)}]`;
    }
    if (name === "Connection" && value !== "" && !/^(close|keep-alive)$/i.test(value)) {
      return `http2: invalid Connection request header: [${goQuote(value)}]`;
    }
    if (name === "Te" && value !== "trailers") return "http2: invalid TE request header";
  }
  return undefined;
}

const CODE_NAMES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

/** RFC 9113 section 7. */
export function codeName(code: number): string {
  return CODE_NAMES[code] ?? `unknown error code 0x${code.toString(16)}`;
}
