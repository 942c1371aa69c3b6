import { goQuote } from "@sluice/client/internal/api/go-json";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { HTTPGetAction } from "../../api/probe-objects.ts";
import { noteCertificate, openSocket, type ProbeDeadline } from "../probe-deadline.ts";
import {
  DeadlineError,
  ExchangeError,
  errored,
  failure,
  type ProbeResult,
  success,
  type WireFacts,
  warning,
} from "../probe-result.ts";
import type { ProbeTarget } from "../probe-target.ts";
import { exchangeHttp2 } from "./exchange-http2.ts";
import { type FirstHop, firstHop, type HttpHop, hopTo, type ProbeUrl } from "./http-hop.ts";
import { exchangeHttp1, type HttpReply } from "./http1-response.ts";

interface Redirect {
  readonly url: ProbeUrl;
  /** A location without a scheme keeps the configured Host header. */
  readonly isRelative: boolean;
}

const FOLLOWED = new Set([301, 302, 303, 307, 308]);

/** Go follows these statuses, but only with a Location. */
function isFollowed(status: number, location: string | undefined): location is string {
  return FOLLOWED.has(status) && location !== undefined && location !== "";
}

/** Throws Error in Go's words for an invalid location. */
function resolveRedirect(location: string, from: ProbeUrl): Redirect {
  const isRelative = !/^[A-Za-z][A-Za-z0-9+.-]*:/.test(location);
  if (!URL.canParse(location, from.text)) {
    throw new Error(
      `failed to parse Location header ${goQuote(location)}: parse ${goQuote(location)}: invalid URL`,
    );
  }
  const { protocol, hostname, port, pathname, search, hash } = new URL(location, from.text);
  const scheme = protocol.slice(0, -1);
  const host = hostname.replace(/^\[|\]$/g, "");
  const refusal =
    scheme === "http" || scheme === "https"
      ? {}
      : { refusal: `unsupported protocol scheme ${goQuote(scheme)}` };
  const number = port === "" ? (scheme === "https" ? 443 : 80) : Number(port);
  const address = port === "" ? (host.includes(":") ? `[${host}]` : host) : joinHostPort(host, number);
  const url = {
    scheme,
    host,
    port: number,
    requestTarget: `${pathname || "/"}${search}`,
    text: `${scheme}://${address}${pathname}${search}${hash}`,
    ...refusal,
  };
  return { url, isRelative };
}

/** Go sends the next server a Referer, except from https to http. */
function refererOf(from: ProbeUrl, to: ProbeUrl): string | undefined {
  if (from.scheme === "https" && to.scheme === "http") return undefined;
  return from.text.replace(/#.*$/s, "").replace(/\/\/[^/@]*@/, "//");
}

interface HttpProbeOptions {
  readonly userAgent: string;
  /** HTTP/2 with prior knowledge on plain TCP, without fallback (KEP-5999). */
  readonly isH2c: boolean;
  readonly deadline: ProbeDeadline;
}

const MAX_REDIRECTS = 10;
const RETRY_MS = 1_000;

/**
 * Sends a GET and judges the status. A network or server fault is a failure; a fault in the probe's
 * own definition is an error.
 */
export async function probeHttp(
  action: HTTPGetAction,
  target: ProbeTarget,
  options: HttpProbeOptions,
): Promise<ProbeResult> {
  const wire: WireFacts = {};
  let first: FirstHop;
  try {
    first = firstHop(action, target, options.userAgent);
  } catch (error) {
    return errored((error as Error).message);
  }
  try {
    if (first.hop === undefined) throw new Error(first.headerRefusal);
    return verdictOf(await followRedirects(first.hop, options, wire), wire);
  } catch (error) {
    return failure(failureText(error as Error, first.url, options.deadline), wire);
  }
}

function verdictOf({ status, body, bodyError }: HttpReply, wire: WireFacts): ProbeResult {
  wire.status = status;
  if (bodyError !== undefined) return errored(bodyError, wire, "Failure");
  if (status >= 300 && status < 400)
    return warning(`Probe terminated redirects, Response body: ${body}`, wire);
  if (status >= 200 && status < 300) return success(body, wire);
  // Leaves out the body, which may contain secrets that Events must not show
  // (kubernetes/kubernetes#99425).
  return failure(`HTTP probe failed with statuscode: ${status}`, wire);
}

/** A failed exchange, with its URL for Go's error text. */
class HopError extends Error {
  override readonly name = "HopError";
  readonly url: string;

  constructor(url: string, cause: Error) {
    super(cause.message, { cause });
    this.url = url;
  }
}

/** Follows redirects while the host name stays the same; port and scheme may change. */
async function followRedirects(
  first: HttpHop,
  options: HttpProbeOptions,
  wire: WireFacts,
): Promise<HttpReply> {
  let hop = first;
  for (let hops = 1; ; hops++) {
    const { url } = hop;
    let reply: HttpReply;
    try {
      reply = await exchangeAgain(hop, options, wire);
    } catch (error) {
      throw new HopError(url.text, error as Error);
    }
    if (!isFollowed(reply.status, reply.location)) return reply;
    const next = redirectOf(reply.location, url);
    if (next.url.host !== first.url.host) return reply;
    if (hops >= MAX_REDIRECTS) {
      throw new HopError(reply.location, new ExchangeError(`stopped after ${MAX_REDIRECTS} redirects`));
    }
    wire.redirects = [...(wire.redirects ?? []), joinHostPort(next.url.host, next.url.port)];
    const referer = refererOf(url, next.url);
    let lines = hop.headers.lines.filter(([name]) => name !== "Referer");
    if (referer !== undefined) lines = [...lines, ["Referer", referer]];
    hop = hopTo(next.url, { lines, host: next.isRelative ? hop.headers.host : undefined });
  }
}

function redirectOf(location: string, from: ProbeUrl): Redirect {
  try {
    return resolveRedirect(location, from);
  } catch (error) {
    throw new HopError(from.text, error as Error);
  }
}

/**
 * Like Go's HTTP/2 client, retries requests that were certainly not processed: at once first, then
 * at growing intervals.
 */
async function exchangeAgain(hop: HttpHop, options: HttpProbeOptions, wire: WireFacts): Promise<HttpReply> {
  for (let waitMs = 0; ; waitMs = waitMs === 0 ? RETRY_MS : waitMs * 2) {
    if (waitMs > 0) await options.deadline.sleep(waitMs);
    try {
      return await exchange(hop, options, wire);
    } catch (error) {
      if (!(error instanceof ExchangeError) || !error.isRetryable) throw error;
    }
  }
}

async function exchange(
  { url, request }: HttpHop,
  { isH2c, deadline }: HttpProbeOptions,
  wire: WireFacts,
): Promise<HttpReply> {
  if (url.refusal !== undefined) throw new ExchangeError(url.refusal);
  const isTls = url.scheme === "https";
  // The kubelet's h2c transport supports no other protocol.
  if (isTls && isH2c) throw new ExchangeError("http: no protocol in common with https");
  const alpn = isTls ? ["h2", "http/1.1"] : undefined;
  const socket = await openSocket({ host: url.host, port: url.port, alpn }, deadline);
  if (isTls) noteCertificate(socket, wire);
  const isHttp2 = isH2c || socket.alpnProtocol === "h2";
  wire.protocol = isH2c ? "h2c" : isHttp2 ? "h2" : "http/1.1";
  return isHttp2 ? exchangeHttp2(socket, request, deadline) : exchangeHttp1(socket, request, deadline);
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
