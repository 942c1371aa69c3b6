import type { ProbeHandler } from "../api/probe-objects.ts";
import { HttpRequest } from "./http/http-request.ts";
import { exchangeHttp1 } from "./http/http1-response.ts";
import { Http2Link } from "./http2/http2-link.ts";
import { openSocket, ProbeDeadline } from "./probe-deadline.ts";
import { DeadlineError, ExchangeError, type ProbeResult } from "./probe-result.ts";

/** The time limit of each of up to four connections. */
const ATTEMPT_TIMEOUT_MS = 1_000;

/** A probe that did not succeed, and its diagnosis so far. */
interface FailedProbe {
  readonly handler: ProbeHandler;
  readonly result: ProbeResult;
  readonly server: ServerKind;
}

/** Describes the classic mistakes, one sentence each; undefined if none fits. */
export function likelyCause({ handler, result, server }: FailedProbe): string | undefined {
  if (handler.exec !== undefined) return causeOfExec(result);
  if (server.speaks === "nothing") return causeOfNothing(server.reason);
  if (handler.httpGet !== undefined) return causeOfHttp(handler.httpGet, result, server);
  if (handler.grpc !== undefined) return causeOfGrpc(handler.grpc, result, server);
  return undefined;
}

function causeOfExec({ error }: ProbeResult): string | undefined {
  return error === undefined
    ? "The command decides by its exit code: 0 is healthy, anything else is not."
    : "The runtime could not run the command: is the program in the image? There is no shell unless the command names one.";
}

function causeOfNothing(reason: string): string {
  if (reason.includes("connection refused")) {
    return "Nothing listens there: is the port right, and does the server listen on the pod's address rather than on 127.0.0.1?";
  }
  if (reason.includes("no such host"))
    return "The name does not exist: a probe without `host` goes to the pod's IP.";
  return "The connection is not even answered: is the address right, and does a NetworkPolicy or firewall drop it?";
}

function causeOfHttp(
  action: NonNullable<ProbeHandler["httpGet"]>,
  { result, wire }: ProbeResult,
  server: ServerKind,
): string | undefined {
  const isHttps = (action.scheme ?? "HTTP").toUpperCase() === "HTTPS";
  if (action.protocol === "HTTP2" && !isHttps && wire.protocol !== "h2c") {
    return "`protocol: HTTP2` did not apply: the gate H2CContainerProbe is off.";
  }
  if (action.protocol === "HTTP2" && server.speaks === "http/1.1") {
    return "The server speaks HTTP/1.1 only: take `protocol: HTTP2` away, or let it accept HTTP/2 with prior knowledge (h2c).";
  }
  if (action.protocol === "HTTP2" && server.speaks === "tls") {
    return "The server expects TLS, and `protocol: HTTP2` means HTTP/2 in cleartext: use `scheme: HTTPS` alone, which negotiates HTTP/2 by ALPN.";
  }
  if (action.protocol !== "HTTP2" && !isHttps && server.speaks === "h2c") {
    return "The server speaks HTTP/2 in cleartext (h2c) only: set `protocol: HTTP2` (gate H2CContainerProbe).";
  }
  if (!isHttps && server.speaks === "tls") return "The server expects TLS: set `scheme: HTTPS`.";
  if (isHttps && server.speaks !== "tls" && wire.status === undefined) {
    return "The server speaks no TLS: set `scheme: HTTP`.";
  }
  if (result === "Warning") {
    return "The server redirects to another host, which a probe does not follow; the kubelet counts it as a success.";
  }
  return causeOfStatus(wire.status);
}

function causeOfStatus(status: number | undefined): string | undefined {
  if (status === undefined)
    return "The server took the connection and did not answer in time, or not to the end.";
  if (status === 401 || status === 403)
    return "The endpoint wants credentials; a probe sends none unless `httpHeaders` does.";
  if (status === 404) return "The server does not know the path.";
  if (status === 400 || status === 421) {
    return "The server refuses the request: many want a `Host` that they know, by `httpHeaders`.";
  }
  return status >= 500 ? "The server answered and says itself that it is not healthy." : undefined;
}

/**
 * TLS alerts of servers that require a client certificate; at TLS 1.2 OpenSSL's alert has other
 * causes too.
 */
const NO_CERTIFICATE = /certificate required|bad certificate|handshake failure/;

function causeOfGrpc(
  action: NonNullable<ProbeHandler["grpc"]>,
  { wire, message }: ProbeResult,
  server: ServerKind,
): string | undefined {
  const isTls = action.mode === "TLS";
  if (wire.isModeIgnored && wire.protocol !== "h2c") {
    return "`mode: TLS` did not apply: the gate GRPCContainerProbeTLS is off.";
  }
  if (NO_CERTIFICATE.test(wire.lastAttempt ?? "")) {
    return "The server probably asks for a client certificate (mTLS), and a probe has none: serve the health service without one.";
  }
  if (!isTls && server.speaks === "tls") {
    return "The server expects TLS: set `mode: TLS` (gate GRPCContainerProbeTLS).";
  }
  if (isTls && server.speaks === "tls" && server.alpn !== "h2") {
    return "The server's TLS does not negotiate h2 by ALPN, which gRPC needs.";
  }
  if (isTls && server.speaks !== "tls") return "The server speaks no TLS: take `mode: TLS` away.";
  if (server.speaks === "http/1.1") return "This is no gRPC server: it speaks HTTP/1.1 only.";
  if (message.startsWith("service unhealthy")) {
    return "The health service answered and says itself that this service does not serve.";
  }
  switch (wire.grpcStatus) {
    case "Unimplemented":
      return "The server has no grpc.health.v1.Health service: register one.";
    case "NotFound":
      return "The health service does not know a service of that name: set its status, or leave `service` empty to ask about the server.";
    case undefined:
      return "The server took the connection and did not answer the call in time.";
    default:
      return undefined;
  }
}

/** The kind of server at a port, found by trying protocols. */
type ServerKind =
  | { readonly speaks: "nothing"; readonly reason: string }
  | { readonly speaks: "tls"; readonly alpn: "h2" | "other" }
  | { readonly speaks: "h2c" | "http/1.1" | "unknown" };

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
