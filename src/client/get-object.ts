import { request as sendRequest } from "node:http";
import type { Socket } from "node:net";
import { USER_AGENT } from "../config/version.ts";
import { ConnectError } from "../http/connect-error.ts";
import { flatHeaders } from "../http/header-list.ts";
import { connectThroughProxy } from "../http/proxy-connection.ts";
import { wholeBody } from "../http/whole-body.ts";
import { dial as dialUpstream } from "../net/dial.ts";
import { UpstreamError } from "../net/upstream-error.ts";
import { apiStatusIn, printable, quotedRefusal } from "./refusal.ts";
import type { Target } from "./target.ts";

/** A list of many pods is a few MiB. */
export const MAX_OBJECT_BYTES: number = 64 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;

/**
 * Reads one object or list of an API server, over a connection of its own, through the target's proxy. `timeoutMs`: of the whole
 * exchange; 0 is none.
 *
 * Throws ConnectError: "http" with the server's Status for an answer that is not 2xx, and as `dial` does.
 */
export async function getObject<T>(
  target: Target,
  path: string,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: { signal?: AbortSignal | undefined; timeoutMs?: number } = {},
): Promise<T> {
  const headers = [
    ["Host", target.url.host],
    ["Accept", "application/json"],
    ["User-Agent", USER_AGENT],
    ...(await target.headers()),
  ] as const;
  const { endpoint, proxy, trace } = target;
  const fullPath = target.pathOf(path);
  trace.request?.("GET", target.url.origin + fullPath, headers);
  const startedMs = performance.now();
  const deadline = timeoutMs === 0 ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
  const ends = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  const options = { signal: ends, allowHalfOpen: false };
  let socket: Socket;
  try {
    socket = await (proxy === undefined
      ? dialUpstream(endpoint, options)
      : connectThroughProxy(proxy, endpoint, options));
  } catch (error) {
    throw asConnectError(error, deadline.aborted);
  }
  try {
    const { status, statusText, body } = await exchange(socket, fullPath, flatHeaders(headers), ends);
    trace.response?.(status, statusText, [], performance.now() - startedMs);
    if (status >= 200 && status <= 299) return JSON.parse(body.toString("utf8")) as T;
    const apiStatus = apiStatusIn(body);
    const text = apiStatus?.message === undefined ? quotedRefusal(body) : printable(apiStatus.message);
    throw new ConnectError("http", text || `the server answered ${status}`, {
      httpStatus: status,
      apiStatus,
    });
  } catch (error) {
    throw asConnectError(error, deadline.aborted);
  } finally {
    socket.destroy();
  }
}

function exchange(
  socket: Socket,
  path: string,
  headers: string[],
  signal: AbortSignal,
): Promise<{ status: number; statusText: string; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const request = sendRequest({ createConnection: () => socket, path, headers, signal });
    request.on("error", reject);
    // A proxy's socket is paused; Node's client takes it for one that flows.
    request.on("socket", () => socket.resume());
    request.on("response", (response) => {
      const { statusCode: status = 0, statusMessage: statusText = "" } = response;
      wholeBody(response, MAX_OBJECT_BYTES).then((body) => resolve({ status, statusText, body }), reject);
    });
    request.end();
  });
}

function asConnectError(error: unknown, isLate: boolean): ConnectError {
  if (error instanceof ConnectError) return error;
  if (isLate) return new ConnectError("response", "net/http: request canceled: timeout", { cause: error });
  if (error instanceof UpstreamError && error.code === "dial-failed") {
    return new ConnectError(error.hasConnected ? "tls" : "tcp", error.message, { cause: error });
  }
  const isAborted = (error as Error).name === "AbortError" || (error as UpstreamError).code === "aborted";
  return new ConnectError(isAborted ? "aborted" : "response", (error as Error).message, { cause: error });
}
