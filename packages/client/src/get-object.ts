import type { Socket } from "node:net";
import { addAbortSignal, type Readable } from "node:stream";
import { USER_AGENT } from "./config/version.ts";
import { legOf } from "./connect.ts";
import { encodeRequestHead, exchangeHeads } from "./http/upgrade/upgrade-request.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import { ResponseBody } from "./http/upstream/response-body.ts";
import { wholeBody } from "./http/upstream/whole-body.ts";
import { CredentialsError } from "./kubernetes/credentials-error.ts";
import { UpstreamError } from "./net/upstream-error.ts";
import { apiStatusIn, printable, quotedRefusal } from "./refusal.ts";
import type { Target } from "./target.ts";

/** An object or list; one of many pods takes a few MiB. Past it: `ConnectError` "response". */
const MAX_OBJECT_BYTES: number = 64 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;
/** The longest delay of a Node timer. */
const NO_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Reads an object or list through the target's proxy; the connection stays open for an immediate
 * next request. `timeoutMs` (30,000) limits the whole exchange; 0 means no limit. Throws
 * CredentialsError, and ConnectError: "http" with the server's Status for an answer other than 2xx,
 * otherwise as `dial` does.
 */
export async function getObject<T>(
  target: Target,
  path: string,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: { signal?: AbortSignal | undefined; timeoutMs?: number } = {},
): Promise<T> {
  const deadline = timeoutMs === 0 ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
  const ends = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  try {
    const { status, body } = await answerOf(target, path, ends, "application/json");
    const whole = await wholeBody(body, MAX_OBJECT_BYTES);
    if (isSuccess(status)) return JSON.parse(whole.toString("utf8")) as T;
    throw refusalOf(status, whole);
  } catch (error) {
    throw asConnectError(error, deadline.aborted);
  }
}

/** Deletes an object, and returns the answer's status. Limits and errors as with `getObject`. */
export async function deleteObject(
  target: Target,
  path: string,
  { timeoutMs = DEFAULT_TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<number> {
  const deadline = timeoutMs === 0 ? new AbortController().signal : AbortSignal.timeout(timeoutMs);
  try {
    const { status, body } = await answerOf(target, path, deadline, "application/json", "DELETE");
    const whole = await wholeBody(body, MAX_OBJECT_BYTES);
    if (isSuccess(status)) return status;
    throw refusalOf(status, whole);
  } catch (error) {
    throw asConnectError(error, deadline.aborted);
  }
}

/**
 * Opens an answer of any length, such as a log that is followed. The body fails with UpstreamError
 * "truncated-body" where the connection breaks off, and never ends cleanly then. `timeoutMs` limits
 * the wait for the answer's head. Throws ConnectError as `getObject` does.
 */
export async function getBody(
  target: Target,
  path: string,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: { signal: AbortSignal; timeoutMs?: number },
): Promise<Readable> {
  const late = new AbortController();
  const timer = timeoutMs === 0 ? undefined : setTimeout(() => late.abort(), timeoutMs);
  try {
    const { status, body } = await answerOf(target, path, AbortSignal.any([signal, late.signal]), "*/*");
    if (isSuccess(status)) return body;
    throw refusalOf(status, await wholeBody(body, MAX_OBJECT_BYTES));
  } catch (error) {
    throw asConnectError(error, late.signal.aborted);
  } finally {
    clearTimeout(timer);
  }
}

/** The answer to a GET or DELETE. Its body ends with an error when `ends` aborts. */
async function answerOf(
  target: Target,
  path: string,
  ends: AbortSignal,
  accept: string,
  method: "GET" | "DELETE" = "GET",
): Promise<{ status: number; body: Readable }> {
  const headers = [
    ["Host", target.url.host],
    ["Accept", accept],
    ["User-Agent", USER_AGENT],
    ...(await target.headers()),
  ] as const;
  const { endpoint, trace } = target;
  const fullPath = target.pathOf(path);
  trace.request?.(method, target.url.origin + fullPath, headers);
  const startedMs = performance.now();
  const socket = await target.connect(endpoint, { signal: ends, reusesReads: true });
  const { head, response } = await exchangeHeads(
    socket,
    encodeRequestHead({ endpoint, method, path: fullPath, headers }),
    { endpoint, method, responseHeaderTimeoutMs: NO_TIMEOUT_MS, signal: ends },
  );
  const { status, reason } = head;
  trace.response?.(status, reason, [], performance.now() - startedMs);
  const options = { deadlineMs: NO_TIMEOUT_MS, release: (idle: Socket) => target.release(idle, endpoint) };
  return { status, body: addAbortSignal(ends, new ResponseBody(socket, response, options)) };
}

function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299;
}

function refusalOf(httpStatus: number, body: Buffer): ConnectError {
  const apiStatus = apiStatusIn(body);
  const text = apiStatus?.message === undefined ? quotedRefusal(body) : printable(apiStatus.message);
  return new ConnectError("http", text || `the server answered ${httpStatus}`, { httpStatus, apiStatus });
}

/** An exchange's failure as the library reports it. Credentials fail before any server is asked. */
export function asConnectError(error: unknown, isLate: boolean): ConnectError | CredentialsError {
  if (error instanceof ConnectError || error instanceof CredentialsError) return error;
  if (isLate) return new ConnectError("response", "net/http: request canceled: timeout", { cause: error });
  if (error instanceof UpstreamError) return new ConnectError(legOf(error), error.message, { cause: error });
  const isAborted = (error as Error).name === "AbortError";
  return new ConnectError(isAborted ? "aborted" : "response", (error as Error).message, { cause: error });
}
