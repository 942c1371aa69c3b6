import type { Socket } from "node:net";
import { connect as connectTls, rootCertificates } from "node:tls";
import {
  DEFAULT_DIAL_TIMEOUT_MS,
  type DialOptions,
  dial,
  isHost,
  type UpstreamEndpoint,
} from "../../net/dial.ts";
import { goDialErrorText, joinHostPort } from "../../net/go-dial-error.ts";
import { UpstreamTls } from "../../net/tls.ts";
import { abortedError, UpstreamError } from "../../net/upstream-error.ts";
import { exchangeHeads } from "../upgrade/upgrade-request.ts";
import { ConnectError } from "../upstream/connect-error.ts";
import { askSocksProxy } from "./socks-proxy.ts";

/** A proxy that connects by HTTP CONNECT (RFC 9110 section 9.3.6) or SOCKS5. */
export interface ProxyServer {
  readonly endpoint: UpstreamEndpoint;
  /** The value of Proxy-Authorization, from the user and password in the proxy's URL. */
  readonly authorization: string | undefined;
  /** Present for SOCKS5, with the user and password in the proxy's URL. */
  readonly socks?: { readonly credentials: Parameters<typeof askSocksProxy>[2] } | undefined;
}

const MAX_QUOTED_CHARACTERS = 80;
const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  "http:": 80,
  "https:": 443,
  "socks5:": 1080,
  "socks5h:": 1080,
};

/**
 * `ca`: trusted in addition to the public authorities (Go trusts only the cluster's CA, which fails
 * for public proxies). Sends no client certificate. Throws ConnectError "proxy" for other schemes.
 */
export function proxyServerOf(url: URL, ca?: string | Buffer, insecureSkipVerify = false): ProxyServer {
  const defaultPort = DEFAULT_PORTS[url.protocol];
  if (defaultPort === undefined) {
    throw new ConnectError("proxy", `proxy: unknown scheme: ${url.protocol.replace(/:$/, "")}`);
  }
  const [username = "", password = ""] = [url.username, url.password].map(decodeURIComponent);
  const user = `${username}:${password}`;
  const tls =
    url.protocol === "https:"
      ? new UpstreamTls({
          insecureSkipVerify,
          ...(ca !== undefined && { ca: [...rootCertificates, ca].join("\n") }),
        })
      : undefined;
  return {
    endpoint: {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? defaultPort : Number(url.port),
      tls,
    },
    ...(url.protocol.startsWith("socks5") && {
      socks: { credentials: username === "" ? undefined : { username, password } },
    }),
    authorization: url.username === "" ? undefined : `Basic ${Buffer.from(user).toString("base64")}`,
  };
}

/**
 * Connects to `endpoint` through the proxy, as `dial` does. Throws ConnectError "proxy", UpstreamError
 * "dial-failed" for the endpoint's TLS, or "aborted", and leaves nothing open.
 */
export async function connectThroughProxy(
  proxy: ProxyServer,
  endpoint: UpstreamEndpoint,
  { dialTimeoutMs, signal, allowHalfOpen }: DialOptions,
): Promise<Socket> {
  const socket = await askProxy(proxy, endpoint, { dialTimeoutMs, signal, allowHalfOpen });
  return await secureSocket(socket, endpoint, { dialTimeoutMs, signal });
}

async function askProxy(
  proxy: ProxyServer,
  endpoint: UpstreamEndpoint,
  { dialTimeoutMs, signal, allowHalfOpen }: DialOptions,
): Promise<Socket> {
  try {
    requireHost(endpoint.host);
    const socket = await dial(proxy.endpoint, { dialTimeoutMs, signal, allowHalfOpen });
    if (proxy.socks !== undefined) {
      await askSocksProxy(socket, endpoint, proxy.socks.credentials, { dialTimeoutMs, signal });
      return socket;
    }
    const { head, rest } = await exchangeHeads(
      socket,
      connectRequest(endpoint.host, endpoint.port, proxy.authorization),
      {
        endpoint: proxy.endpoint,
        method: "CONNECT",
        responseHeaderTimeoutMs: dialTimeoutMs,
        signal,
      },
    );
    if (head.status < 200 || head.status > 299) {
      socket.destroy();
      const reason = head.reason.slice(0, MAX_QUOTED_CHARACTERS);
      throw new ConnectError("proxy", `proxy: ${head.status} ${reason}`, {
        httpStatus: head.status,
      });
    }
    if (rest.byteLength > 0) socket.unshift(rest);
    return socket;
  } catch (error) {
    if (!(error instanceof UpstreamError) || error.code === "aborted") throw error;
    const { host, port } = proxy.endpoint;
    const where = `${joinHostPort(host, port)}->${joinHostPort(endpoint.host, endpoint.port)}`;
    const what = proxy.socks === undefined ? "proxyconnect tcp" : `socks connect tcp ${where}`;
    throw new ConnectError("proxy", `${what}: ${error.message}`, { cause: error });
  }
}

/**
 * The head that requests a tunnel from an HTTP proxy (RFC 9110 section 9.3.6). `authorization` is the
 * value of Proxy-Authorization. Throws UpstreamError "dial-failed" for a host that is not a single
 * word.
 */
export function connectRequest(host: string, port: number, authorization: string | undefined): Buffer {
  requireHost(host);
  const target = joinHostPort(host, port);
  const credentials = authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return Buffer.from(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credentials}\r\n`, "latin1");
}

/** Throws UpstreamError "dial-failed" for a text that a proxy must not resolve. */
export function requireHost(host: string): void {
  if (isHost(host)) return;
  const quoted = JSON.stringify(host.slice(0, MAX_QUOTED_CHARACTERS));
  throw new UpstreamError("dial-failed", `${quoted} is neither an IP address nor a host name`);
}

/**
 * Starts TLS with `endpoint` over the connection, or returns it unchanged if the endpoint has no TLS,
 * as `dial` would. On failure closes it and throws UpstreamError "dial-failed" or "aborted".
 */
export function secureSocket(
  socket: Socket,
  endpoint: UpstreamEndpoint,
  { dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS, signal }: Pick<DialOptions, "dialTimeoutMs" | "signal">,
): Promise<Socket> {
  const { host, port, tls } = endpoint;
  if (tls === undefined) return Promise.resolve(socket);
  return new Promise((resolve, reject) => {
    const secured = connectTls({ ...tls.connectOptions(host, port, endpoint), socket });
    const settle = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      secured.off("error", onError).off("close", onClose).off("secureConnect", onSecure);
      secured.on("error", (error) => secured.destroy(error));
    };
    const fail = (error: UpstreamError): void => {
      settle();
      secured.destroy();
      socket.destroy();
      reject(error);
    };
    const failed = (text: string, cause?: Error): void =>
      fail(new UpstreamError("dial-failed", text, { cause, hasConnected: true }));
    const onAbort = (): void => fail(abortedError());
    const onError = (error: Error): void => {
      tls.forgetSession(host, port, endpoint);
      failed(goDialErrorText(error, joinHostPort(host, port)), error);
    };
    const onClose = (): void => failed("EOF");
    const onSecure = (): void => {
      settle();
      resolve(secured);
    };
    const timer = setTimeout(() => failed("net/http: TLS handshake timeout"), dialTimeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    secured.on("error", onError).on("close", onClose).on("secureConnect", onSecure);
    // Stays registered: TLS 1.3 delivers its tickets after the handshake.
    secured.on("session", (session: Buffer) => tls.rememberSession(host, port, session, endpoint));
  });
}
