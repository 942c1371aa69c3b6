import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type SecureClientSessionOptions,
} from "node:http2";
import type { WebSocket } from "ws";
import { clientSocketOver } from "./tunnel-client.ts";

export interface Http2Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The code of the stream's reset; 0: no reset, or one without an error. */
  readonly rstCode: number;
}

/** A node:http2 client on one connection. Its streams report whatever breaks the connection. */
export async function connectHttp2(
  url: string,
  options: SecureClientSessionOptions = {},
): Promise<ClientHttp2Session> {
  const session = connect(url, { rejectUnauthorized: false, ...options });
  session.on("error", () => {});
  await once(session, "remoteSettings");
  return session;
}

/**
 * One plain request, read to the end of its answer. Status 0: the stream was reset before any
 * answer.
 */
export async function ask(
  session: ClientHttp2Session,
  path: string,
  headers: Record<string, string | string[]> = {},
  body?: string | Buffer,
): Promise<Http2Answer> {
  const stream = session.request({ ":path": path, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return await answerOf(stream);
}

/**
 * Requests a WebSocket on a stream (RFC 8441), with `ws` as the client. If the request is refused,
 * the result is the refusal.
 */
export async function openWebSocket(
  session: ClientHttp2Session,
  path: string,
  headers: Record<string, string> = {},
): Promise<Http2WebSocket | Http2Answer> {
  const opened = await openSwitched(session, path, headers);
  return "status" in opened
    ? opened
    : { ...opened, socket: clientSocketOver(opened.stream, Buffer.alloc(0)) };
}

/** The same, without a client on the stream yet. */
export async function openSwitched(
  session: ClientHttp2Session,
  path: string,
  headers: Record<string, string> = {},
): Promise<Pick<Http2WebSocket, "head" | "stream"> | Http2Answer> {
  const stream = session.request(
    {
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": path,
      "sec-websocket-version": "13",
      ...headers,
    },
    { endStream: false },
  );
  const answered = answerOf(stream);
  const first = await Promise.race([once(stream, "response"), answered]);
  if (!Array.isArray(first)) return first;
  const [head] = first as [IncomingHttpHeaders];
  if (Number(head[":status"]) !== 200) return await answered;
  stream.removeAllListeners("data");
  return { head, stream };
}

export interface Http2WebSocket {
  readonly head: IncomingHttpHeaders;
  readonly stream: ClientHttp2Stream;
  readonly socket: WebSocket;
}

function answerOf(stream: ClientHttp2Stream): Promise<Http2Answer> {
  let headers: IncomingHttpHeaders = {};
  const parts: Buffer[] = [];
  stream.on("error", () => {});
  stream.on("response", (received) => {
    headers = received;
  });
  stream.on("data", (part: Buffer) => parts.push(part));
  return new Promise((resolve) => {
    stream.once("close", () => {
      const body = Buffer.concat(parts).toString();
      const rstCode = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
      resolve({ status: Number(headers[":status"] ?? 0), headers, body, rstCode });
    });
  });
}
