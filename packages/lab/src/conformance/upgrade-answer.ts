import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { connectThroughProxy } from "@sluice/client/internal/http/proxies/proxy-connection";
import { requestUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { SessionPlace } from "./endpoint.ts";

/** The answer to an upgrade request, unchanged. */
export interface UpgradeAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  /** Empty for a 101. */
  readonly body: Buffer;
  /** Why the body is incomplete. */
  readonly bodyProblem?: string;
}

const MAX_BODY_BYTES = 64 * 1024;

/** Sends one request, and closes the connection after its answer. Throws UpstreamError if none arrives. */
export async function answerTo(
  { target, path }: SessionPlace,
  method: string,
  headers: HeaderList,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<UpgradeAnswer> {
  const { endpoint, proxy } = target;
  const response = await requestUpgrade({
    endpoint,
    method,
    path: target.pathOf(path),
    headers: [["Host", target.url.host], ...(await target.headers()), ...headers],
    dialTimeoutMs: timeoutMs,
    responseHeaderTimeoutMs: timeoutMs,
    relayAnswersMs: timeoutMs,
    signal,
    connect: proxy && ((options) => connectThroughProxy(proxy, endpoint, options)),
  });
  const { status, rawHeaders } = response;
  if (response.kind === "switched") {
    response.socket.on("error", () => {});
    response.socket.destroy();
    return { status, headers: rawHeaders, body: Buffer.alloc(0) };
  }
  const parts: Buffer[] = [];
  let byteLength = 0;
  let bodyProblem: string | undefined;
  try {
    for await (const part of response.body) {
      parts.push(part as Buffer);
      byteLength += (part as Buffer).byteLength;
      if (byteLength > MAX_BODY_BYTES) break;
    }
  } catch (error) {
    bodyProblem = error instanceof Error ? error.message : String(error);
  }
  response.body.destroy();
  const answer = { status, headers: rawHeaders, body: Buffer.concat(parts) };
  return bodyProblem === undefined ? answer : { ...answer, bodyProblem };
}
