import type { IncomingMessage } from "node:http";
import { request as startRequest } from "node:https";
import type { Access } from "../doors.ts";

export interface HttpExchange {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string;
}

/** What came back; of a 101 the head alone. `status` 0: no response, and `body` is the error. */
export interface HttpAnswer {
  readonly status: number;
  /** By lower-case name; several values of one name joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const TIMEOUT_MS = 30_000;

/** One exchange on a connection of its own, with the credentials of `access` unless the exchange has an Authorization header. */
export function exchange(
  access: Access,
  { method, path, headers = {}, body }: HttpExchange,
): Promise<HttpAnswer> {
  const { url, ca, token, cert, key } = access;
  const { hostname, port } = new URL(url);
  const all: Record<string, string | readonly string[]> = {
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...headers,
  };
  return new Promise((resolve) => {
    const fail = (error: Error): void => resolve({ status: 0, headers: {}, body: error.message });
    const request = startRequest({
      hostname,
      port,
      method,
      path,
      headers: all as Record<string, string | string[]>,
      agent: false,
      ca,
      ...(cert !== undefined && key !== undefined && { cert, key }),
    });
    const answerOf = (response: IncomingMessage, text: string): HttpAnswer => ({
      status: response.statusCode ?? 0,
      headers: Object.fromEntries(
        Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(", ")]),
      ),
      body: text,
    });
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error(`no end within ${TIMEOUT_MS} ms`)));
    request.on("error", fail);
    request.on("upgrade", (response, socket) => {
      socket.on("error", () => {});
      socket.destroy();
      resolve(answerOf(response, ""));
    });
    request.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => resolve(answerOf(response, Buffer.concat(chunks).toString("latin1"))));
      response.on("error", fail);
    });
    request.end(body);
  });
}
