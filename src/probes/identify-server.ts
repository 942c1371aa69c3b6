import { exchangeHttp1 } from "./http/exchange-http1.ts";
import { HttpRequest } from "./http/http-request.ts";
import { Http2Link } from "./http2/http2-link.ts";
import { openSocket, ProbeDeadline } from "./probe-deadline.ts";
import { DeadlineError, ExchangeError } from "./probe-result.ts";

/** The kind of server at a port, found by trying protocols. */
export type ServerKind =
  | { readonly speaks: "nothing"; readonly reason: string }
  | { readonly speaks: "tls"; readonly alpn: "h2" | "other" }
  | { readonly speaks: "h2c" | "http/1.1" | "unknown" };

/** Applies to each of up to four connections. */
const ATTEMPT_TIMEOUT_MS = 1_000;

/**
 * Tries TCP, TLS, HTTP/2 with prior knowledge and HTTP/1.1, one after the other. Users call it to
 * diagnose; workers do not.
 */
export async function identifyServer(host: string, port: number): Promise<ServerKind> {
  try {
    await attempt(async (deadline) => (await openSocket({ host, port }, deadline)).destroy());
  } catch (error) {
    const reason = error instanceof DeadlineError ? "no answer to the connection" : (error as Error).message;
    return { speaks: "nothing", reason };
  }
  const alpn = await attempt((deadline) => tlsAlpnOf(host, port, deadline)).catch(() => undefined);
  if (alpn !== undefined) return { speaks: "tls", alpn };
  if (await attempt((deadline) => speaksH2c(host, port, deadline)).catch(() => false))
    return { speaks: "h2c" };
  if (await attempt((deadline) => speaksHttp1(host, port, deadline)).catch(() => false)) {
    return { speaks: "http/1.1" };
  }
  return { speaks: "unknown" };
}

async function attempt<T>(run: (deadline: ProbeDeadline) => Promise<T>): Promise<T> {
  const deadline = new ProbeDeadline(ATTEMPT_TIMEOUT_MS);
  try {
    return await run(deadline);
  } finally {
    deadline.end();
  }
}

async function tlsAlpnOf(host: string, port: number, deadline: ProbeDeadline): Promise<"h2" | "other"> {
  const socket = await openSocket({ host, port, alpn: ["h2", "http/1.1"] }, deadline);
  const isH2 = socket.alpnProtocol === "h2";
  socket.destroy();
  return isH2 ? "h2" : "other";
}

/** A server that speaks HTTP/2 sends its SETTINGS after the preface (RFC 9113 section 3.4). */
async function speaksH2c(host: string, port: number, deadline: ProbeDeadline): Promise<boolean> {
  const socket = await openSocket({ host, port }, deadline);
  return new Promise((resolve) => {
    const settle = (isHttp2: boolean): void => {
      link.close();
      resolve(isHttp2);
    };
    const link = new Http2Link(socket, {
      onSettings: () => settle(true),
      onHead: () => {},
      onData: () => {},
      onTrailers: () => {},
      onEnd: () => {},
      onReset: () => {},
      onGoaway: () => {},
      onBroken: () => settle(false),
    });
    deadline.onOver(() => settle(false));
    link.flush();
  });
}

async function speaksHttp1(host: string, port: number, deadline: ProbeDeadline): Promise<boolean> {
  const socket = await openSocket({ host, port }, deadline);
  const request = new HttpRequest("http", host, "/", []);
  try {
    return (await exchangeHttp1(socket, request, deadline)).status > 0;
  } catch (error) {
    if (error instanceof ExchangeError || error instanceof DeadlineError) return false;
    throw error;
  }
}
