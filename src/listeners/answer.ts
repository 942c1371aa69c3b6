import { STATUS_CODES } from "node:http";
import type { Duplex, Writable } from "node:stream";
import type { StatusError } from "@sluice/client/internal/api/status";
import { type Status, statusBody, statusHeaders } from "@sluice/client/internal/api/status-body";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { HeaderLine, HeaderList } from "@sluice/client/internal/http/header-list";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { finishAndLinger } from "@sluice/client/internal/net/linger";
import { http2ResponseHeaders } from "../http/http2-headers.ts";
import { closeWhenSent } from "../http/watch-http2-session.ts";
import type { ResponseContext } from "../sessions/resumption/owner-server.ts";

/**
 * Bytes of a refused upgrade's Status: gorilla's dialler reads no more and shows a cut one raw.
 * Past it the message is shortened.
 */
const MAX_UPGRADE_STATUS_BYTES = 1_024;

const REASON_PHRASES: Readonly<Record<number, string>> = {
  101: "Switching Protocols",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  409: "Conflict",
  422: "Unprocessable Entity",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

/**
 * Encodes a response head for a socket that Node's HTTP server has handed over. Headers keep their
 * order and case.
 */
function encodeResponseHead(status: number, headers: HeaderList, statusMessage?: string): string {
  const phrase = statusMessage ?? REASON_PHRASES[status] ?? "Unknown";
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${phrase}\r\n${lines.join("")}\r\n`;
}

/**
 * Refuses an upgrade with a Status that kubectl decodes, and closes, since a refused connection is not
 * reused.
 */
export function refuseUpgrade(socket: Duplex, error: StatusError, context: ResponseContext): void {
  const body = Buffer.from(statusBody(error.status, MAX_UPGRADE_STATUS_BYTES));
  answerAndClose(socket, error.code, Object.entries(statusHeaders(error.status)), body, context);
}

/**
 * Answers an upgrade with a whole body, then closes the connection or HTTP/2 stream once the client
 * could read it.
 */
export function answerAndClose(
  socket: Duplex,
  status: number,
  headers: HeaderList,
  body: Uint8Array,
  context: ResponseContext,
): void {
  if (!socket.writable) return;
  const lines: HeaderLine[] = [
    ...headers,
    ["Content-Length", String(body.byteLength)],
    ["Connection", "close"],
    ["Date", new Date().toUTCString()],
  ];
  if (isHttp2Stream(socket)) {
    socket.respond(http2ResponseHeaders(status, lines));
    socket.end(body);
    // The rest of the request is not needed (RFC 9113 section 8.1).
    closeWhenSent(socket, context.lingerTimes.lingerIdleMs);
    return;
  }
  const head = encodeResponseHead(status, lines);
  socket.cork();
  socket.write(head);
  socket.write(body);
  socket.uncork();
  finishAndLinger(socket, context.lingerTimes, context.clock);
}

/** Writes a whole answer of the gateway's own, with Content-Length and Date. */
export function writeAnswer(
  downstream: HttpDownstream,
  status: number,
  headers: HeaderList,
  body: Uint8Array,
): void {
  const lines: HeaderLine[] = [
    ...headers,
    ["Content-Length", String(body.byteLength)],
    ["Date", new Date().toUTCString()],
  ];
  const hasBody = downstream.method !== "HEAD" && body.byteLength > 0;
  downstream.respondWhole(status, STATUS_CODES[status] ?? "", lines, hasBody ? [body] : [], []);
}

/** Answers a plain request with a Status, or aborts an answer that has already begun. */
export function writeStatus(downstream: HttpDownstream, status: Status): void {
  if (downstream.hasResponded) {
    downstream.abort();
    return;
  }
  writeAnswer(
    downstream,
    status.code,
    Object.entries(statusHeaders(status)),
    Buffer.from(statusBody(status)),
  );
}

/** Resolves when the client has taken the written bytes, or has left. Removes its listeners. */
export function waitForDrain(response: Writable): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off("drain", settle).off("close", settle);
      resolve();
    };
    response.on("drain", settle).on("close", settle);
  });
}
