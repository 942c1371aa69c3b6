import { TLSSocket } from "node:tls";
import type { HTTPGetAction } from "../../api/probe-objects.ts";
import { joinHostPort } from "../../upstream/go-dial-error.ts";
import { resolveContainerPort } from "../container-port.ts";
import { DeadlineError, ExchangeError, noteRoute } from "../exchange-error.ts";
import { noteCertificate, openSocket } from "../open-socket.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { errored, failure, type ProbeResult, success, type WireFacts, warning } from "../probe-result.ts";
import type { ProbeTarget } from "../probe-target.ts";
import { exchangeHttp1 } from "./exchange-http1.ts";
import { exchangeHttp2 } from "./exchange-http2.ts";
import type { HttpReply } from "./http-reply.ts";
import { type ProbeHeaders, probeHeaders } from "./probe-headers.ts";
import { type ProbeUrl, probeUrl } from "./probe-url.ts";
import { isFollowed, type Redirect, refererOf, resolveRedirect } from "./redirect.ts";

export interface HttpProbeOptions {
  readonly userAgent: string;
  /** HTTP/2 with prior knowledge on plain TCP, and nothing else (KEP-5999). */
  readonly isH2c: boolean;
  readonly deadline: ProbeDeadline;
}

const MAX_REDIRECTS = 10;
const RETRY_MS = 1_000;

/** GET, judged by the status. What the network or the server does wrong is a failure; what the probe itself says wrongly is an error. */
export async function probeHttp(
  action: HTTPGetAction,
  target: ProbeTarget,
  options: HttpProbeOptions,
): Promise<ProbeResult> {
  const wire: WireFacts = {};
  let url: ProbeUrl;
  try {
    const port = resolveContainerPort(action.port, target.containerPorts);
    const scheme = (action.scheme || "HTTP").toLowerCase();
    url = probeUrl(scheme, action.host || target.host, port, action.path ?? "/");
  } catch (error) {
    return errored((error as Error).message);
  }
  try {
    const headers = probeHeaders(action.httpHeaders ?? [], options.userAgent);
    return verdictOf(await followRedirects(url, headers, options, wire), wire);
  } catch (error) {
    return failure(failureText(error as Error, url, options.deadline), wire);
  }
}

function verdictOf({ status, body, bodyError }: HttpReply, wire: WireFacts): ProbeResult {
  wire.status = status;
  if (bodyError !== undefined) return errored(bodyError, wire, "Failure");
  if (status >= 300 && status < 400)
    return warning(`Probe terminated redirects, Response body: ${body}`, wire);
  if (status >= 200 && status < 300) return success(body, wire);
  // Never the body: it may hold what Events must not show (kubernetes/kubernetes#99425).
  return failure(`HTTP probe failed with statuscode: ${status}`, wire);
}

/** An exchange failed while this URL was asked; Go's errors name it. */
class HopError extends Error {
  override readonly name = "HopError";
  readonly url: string;

  constructor(url: string, cause: Error) {
    super(cause.message, { cause });
    this.url = url;
  }
}

/** Redirects are followed while the host name stays the same; port and scheme may change. */
async function followRedirects(
  first: ProbeUrl,
  headers: ProbeHeaders,
  options: HttpProbeOptions,
  wire: WireFacts,
): Promise<HttpReply> {
  let url = first;
  let { host } = headers;
  let { lines } = headers;
  for (let hops = 1; ; hops++) {
    const reply = await exchangeAgain(url, { lines, host }, options, wire).catch((error: Error) => {
      throw new HopError(url.text, error);
    });
    if (!isFollowed(reply.status, reply.location)) return reply;
    const next = redirectOf(reply.location, url);
    if (next.url.host !== first.host) return reply;
    if (hops >= MAX_REDIRECTS) {
      throw new HopError(reply.location, new ExchangeError(`stopped after ${MAX_REDIRECTS} redirects`));
    }
    wire.redirects = [...(wire.redirects ?? []), joinHostPort(next.url.host, next.url.port)];
    const referer = refererOf(url, next.url);
    lines = lines.filter(([name]) => name !== "Referer");
    if (referer !== undefined) lines = [...lines, ["Referer", referer]];
    if (!next.isRelative) host = undefined;
    url = next.url;
  }
}

function redirectOf(location: string, from: ProbeUrl): Redirect {
  try {
    return resolveRedirect(location, from);
  } catch (error) {
    throw new HopError(from.text, error as Error);
  }
}

/** Go's HTTP/2 client tries what was certainly not processed again: at once, then slower and slower. */
async function exchangeAgain(
  url: ProbeUrl,
  headers: ProbeHeaders,
  options: HttpProbeOptions,
  wire: WireFacts,
): Promise<HttpReply> {
  for (let waitMs = 0; ; waitMs = waitMs === 0 ? RETRY_MS : waitMs * 2) {
    if (waitMs > 0) await options.deadline.sleep(waitMs);
    try {
      return await exchange(url, headers, options, wire);
    } catch (error) {
      if (!(error instanceof ExchangeError) || !error.isRetryable) throw error;
    }
  }
}

async function exchange(
  url: ProbeUrl,
  headers: ProbeHeaders,
  { isH2c, deadline }: HttpProbeOptions,
  wire: WireFacts,
): Promise<HttpReply> {
  if (url.refusal !== undefined) throw new ExchangeError(url.refusal);
  const isTls = url.scheme === "https";
  // The kubelet's transport for h2c knows that one protocol only.
  if (isTls && isH2c) throw new ExchangeError("http: no protocol in common with https");
  const alpn = isTls ? ["h2", "http/1.1"] : undefined;
  const socket = await openSocket({ host: url.host, port: url.port, alpn }, deadline);
  if (!isTls) noteRoute(socket, joinHostPort(url.host, url.port));
  noteCertificate(socket, wire);
  const isHttp2 = isH2c || (socket instanceof TLSSocket && socket.alpnProtocol === "h2");
  wire.protocol = isH2c ? "h2c" : isHttp2 ? "h2" : "http/1.1";
  const request = {
    scheme: url.scheme,
    authority: headers.host ?? authorityOf(url),
    requestTarget: url.requestTarget,
    headers: headers.lines,
  };
  if (isHttp2) return exchangeHttp2(socket, request, deadline);
  return exchangeHttp1(socket, request, deadline);
}

function authorityOf({ text, host, port }: ProbeUrl): string {
  return /^[a-z]+:\/\/(?:[^/?#@]*@)?([^/?#]*)/.exec(text)?.[1] ?? joinHostPort(host, port);
}

function failureText(error: Error, first: ProbeUrl, deadline: ProbeDeadline): string {
  const url = error instanceof HopError ? error.url : first.text;
  const cause = error instanceof HopError ? (error.cause as Error) : error;
  return `Get ${JSON.stringify(url)}: ${cause instanceof DeadlineError ? overText(deadline) : cause.message}`;
}

function overText({ reason }: ProbeDeadline): string {
  if (reason === "cancelled") return "context canceled";
  return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
}
