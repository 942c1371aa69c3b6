import { connect as connectUnix, type Socket } from "node:net";
import {
  connectRequest,
  requireHost,
  secureSocket,
} from "@sluice/client/internal/http/proxies/proxy-connection";
import { exchangeHeads } from "@sluice/client/internal/http/upgrade/upgrade-request";
import {
  DEFAULT_DIAL_TIMEOUT_MS,
  type DialOptions,
  dial,
  type UpstreamEndpoint,
} from "@sluice/client/internal/net/dial";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { abortedError, UpstreamError } from "@sluice/client/internal/net/upstream-error";

/**
 * An HTTP proxy that reaches nodes by CONNECT (RFC 9110 section 9.3.6), such as konnectivity in its
 * http-connect mode.
 */
export interface EgressProxy {
  /** TCP, with or without TLS, or a Unix socket. */
  readonly server: UpstreamEndpoint | { readonly socketPath: string };
  /** Returns the value of Proxy-Authorization; called for each dial. */
  readonly authorization?: (() => Promise<string>) | undefined;
}

/**
 * The head of an egress proxy's answer: a status line and a few headers. Past it: 500, `header size
 * limit exceeded`.
 */
const MAX_PROXY_HEAD_BYTES: number = 64 * 1024;
const MAX_QUOTED_CHARACTERS = 100;

/**
 * Connects to `endpoint` through the proxy, which resolves the name, within one timeout. Returns a
 * socket like `dial`'s. Throws UpstreamError "dial-failed" or "aborted" and leaves nothing open.
 */
export async function dialThroughProxy(
  proxy: EgressProxy,
  endpoint: UpstreamEndpoint,
  { dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS, signal }: DialOptions,
): Promise<Socket> {
  requireHost(endpoint.host);
  const deadlineMs = performance.now() + dialTimeoutMs;
  const remaining = () => ({ dialTimeoutMs: Math.max(1, deadlineMs - performance.now()), signal });
  const authorization = await authorizationOf(proxy);
  const socket =
    "socketPath" in proxy.server
      ? await dialUnix(proxy.server.socketPath, remaining())
      : await dial(proxy.server, remaining());
  await askFor(endpoint, proxy, socket, authorization, remaining());
  return await secureSocket(socket, endpoint, remaining());
}

/** The error goes to clients, so its reason must appear in logs only. */
async function authorizationOf({ authorization }: EgressProxy): Promise<string | undefined> {
  try {
    return await authorization?.();
  } catch (cause) {
    throw new UpstreamError("dial-failed", "the credentials for the egress proxy cannot be read", { cause });
  }
}

/** Requests the tunnel. Closes the socket before it throws. */
async function askFor(
  endpoint: UpstreamEndpoint,
  { server }: EgressProxy,
  socket: Socket,
  authorization: string | undefined,
  { dialTimeoutMs, signal }: DialOptions,
): Promise<void> {
  const target = joinHostPort(endpoint.host, endpoint.port);
  const proxy = "socketPath" in server ? server.socketPath : joinHostPort(server.host, server.port);
  const fail = (text: string, cause?: unknown): never => {
    socket.destroy();
    throw new UpstreamError("dial-failed", text, { cause });
  };
  const request = connectRequest(endpoint.host, endpoint.port, authorization);
  const { head, rest } = await exchangeHeads(socket, request, {
    endpoint,
    method: "CONNECT",
    responseHeaderTimeoutMs: dialTimeoutMs,
    maxResponseHeadBytes: MAX_PROXY_HEAD_BYTES,
    signal,
  }).catch((error: unknown) => {
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    const text = error.code === "response-timeout" ? "i/o timeout" : error.message;
    return fail(`reading HTTP response from CONNECT to ${target} via proxy ${proxy} failed: ${text}`, error);
  });
  const { status, reason } = head;
  if (status < 200 || status > 299) {
    const line = `${status} ${reason.slice(0, MAX_QUOTED_CHARACTERS)}`;
    fail(`proxy error from ${proxy} while dialing ${target}, code ${status}: ${line}`);
  }
  // A kubelet never speaks first, so these bytes are the proxy's own.
  if (rest.byteLength > 0) {
    fail(`unexpected ${rest.byteLength} bytes of buffered data from CONNECT proxy ${JSON.stringify(proxy)}`);
  }
}

function dialUnix(path: string, { dialTimeoutMs, signal }: DialOptions): Promise<Socket> {
  if (signal?.aborted) return Promise.reject(abortedError());
  return new Promise((resolve, reject) => {
    const socket = connectUnix({ path, allowHalfOpen: true });
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      socket.off("error", onError).off("connect", onConnect);
      socket.on("error", () => {});
    };
    const fail = (error: UpstreamError): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const onAbort = (): void => fail(abortedError());
    const failed = (text: string, cause?: Error): void =>
      fail(new UpstreamError("dial-failed", `dial unix ${path}: ${text}`, { cause }));
    const onError = (error: NodeJS.ErrnoException): void =>
      failed(
        `connect: ${error.code === "ENOENT" ? "no such file or directory" : (error.code ?? error.message)}`,
        error,
      );
    const onConnect = (): void => {
      settle();
      resolve(socket);
    };
    // Connecting to a Unix socket waits while its backlog is full.
    const timer = setTimeout(() => failed("i/o timeout"), dialTimeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    socket.on("error", onError).on("connect", onConnect);
  });
}
