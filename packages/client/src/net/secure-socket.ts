import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { DEFAULT_DIAL_TIMEOUT_MS, type DialOptions, type UpstreamEndpoint } from "./dial.ts";
import { goDialErrorText, joinHostPort } from "./go-dial-error.ts";
import { abortedError, UpstreamError } from "./upstream-error.ts";

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
      secured.on("error", () => {});
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
