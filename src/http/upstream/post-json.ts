import { type ClientRequest, type IncomingMessage, request as sendRequest } from "node:http";
import { USER_AGENT } from "../../config/version.ts";
import { joinHostPort } from "../../net/go-dial-error.ts";
import type { HttpUpstream } from "./http-upstream.ts";
import { wholeBody } from "./whole-body.ts";

export interface JsonPost {
  /** The path, with a query if there is one. */
  readonly path: string;
  /** A value to encode as JSON; a Buffer is sent as it is. */
  readonly body: unknown;
  /** Sent as `Authorization: Bearer`. Errors never contain it. */
  readonly bearerToken?: string | undefined;
  /** Limit from the call to the answer's last byte. */
  readonly timeoutMs: number;
}

export interface JsonAnswer {
  readonly status: number;
  /** Undefined if the body is not JSON. */
  readonly body: unknown;
}

/** Answers to reviews are a few hundred bytes. A larger answer than this fails. */
export const MAX_JSON_ANSWER_BYTES: number = 1024 * 1024;

/**
 * Posts an idempotent query, and retries once on a new connection if an idle one had closed. Follows
 * no redirect. Rejects with an Error that contains neither token nor bodies.
 */
export async function postJson(upstream: HttpUpstream, post: JsonPost): Promise<JsonAnswer> {
  const deadlineMs = performance.now() + post.timeoutMs;
  const body = Buffer.isBuffer(post.body) ? post.body : Buffer.from(JSON.stringify(post.body));
  const first = await exchange(upstream, post, body, deadlineMs);
  const answer = first === "stale" ? await exchange(upstream, post, body, deadlineMs) : first;
  if (answer === "stale") throw new Error("the connection was closed before the answer");
  return answer;
}

function exchange(
  upstream: HttpUpstream,
  { path, bearerToken, timeoutMs }: JsonPost,
  body: Buffer,
  deadlineMs: number,
): Promise<JsonAnswer | "stale"> {
  const { host, port } = upstream.endpoint;
  return new Promise((resolve, reject) => {
    const request: ClientRequest = sendRequest({
      agent: upstream.agent,
      host,
      port,
      method: "POST",
      path,
      headers: {
        Host: joinHostPort(host, port),
        Accept: "application/json",
        "User-Agent": USER_AGENT,
        "Content-Type": "application/json",
        "Content-Length": body.byteLength,
        ...(bearerToken !== undefined && { Authorization: `Bearer ${bearerToken}` }),
      },
    });
    const timer = setTimeout(
      () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)),
      Math.max(1, deadlineMs - performance.now()),
    );
    request.on("close", () => clearTimeout(timer));
    request.on("error", (error: NodeJS.ErrnoException) => {
      if (request.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE")) resolve("stale");
      else reject(error);
    });
    request.on("response", (response) => void readJsonAnswer(response).then(resolve, reject));
    request.end(body);
  });
}

/** Rejects if the answer breaks off or exceeds MAX_JSON_ANSWER_BYTES. */
export async function readJsonAnswer(response: IncomingMessage): Promise<JsonAnswer> {
  const body = await wholeBody(response, MAX_JSON_ANSWER_BYTES);
  return { status: response.statusCode ?? 0, body: parsed(body) };
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
}
