import { goQuote } from "@sluice/client/internal/api/go-json";
import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import { REASON_HEADER, REASON_QUERY, reasonOf } from "../access/policy/evaluate-policy.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { nonUtf8Parameter } from "../http/request-url.ts";
import { type ClientOffer, clientOfferOf } from "./client-offer.ts";

export type Subresource = "exec" | "attach" | "portforward";

/** The pod that a streaming URL names. */
export interface StreamingPath {
  readonly namespace: string;
  readonly pod: string;
  readonly subresource: Subresource;
}

/** A streaming request, parsed once. Later steps do not read the URL again. */
export interface StreamingRequest extends StreamingPath {
  readonly method: string;
  /** The raw path and query, for audit and the like. Contains the command line. */
  readonly path: string;
  readonly container: string | undefined;
  readonly command: readonly string[];
  readonly streams: RequestedStreams;
  /** Only legacy WebSocket port-forward names its ports in the URL. */
  readonly ports: readonly number[];
  readonly offer: ClientOffer;
  /** The user's reason for the session; empty if none was given. */
  readonly reason: string;
  readonly headers: HeaderList;
  readonly remoteAddress: string;
  /** The peer is trusted to report earlier hops. */
  readonly isPeerTrusted: boolean;
}

const STREAMING_PATH = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/(exec|attach|portforward)\/?$/;

/** The pod and subresource in a path, percent-decoded; undefined if it is not a streaming path. */
export function matchStreamingPath(pathname: string): StreamingPath | undefined {
  const match = STREAMING_PATH.exec(pathname);
  if (match === null) return undefined;
  const namespace = decodeSegment(match[1]);
  const pod = decodeSegment(match[2]);
  if (namespace === undefined || pod === undefined) return undefined;
  return { namespace, pod, subresource: match[3] as Subresource };
}

/**
 * Parses options, offer and headers. Throws a StatusError 400 for values that the API server's decoder
 * refuses.
 */
export function parseStreamingRequest(
  path: StreamingPath,
  request: { method: string; url: URL; headers: HeaderList; remoteAddress: string; isPeerTrusted?: boolean },
): StreamingRequest {
  const query = request.url.searchParams;
  if (query.has("dryRun")) throw WIRE_ERRORS["dry-run"].streaming();
  // Container runtimes answer 500 to it. If it were decoded, the command that runs would differ from the
  // audited one.
  const unreadable = nonUtf8Parameter(request.url);
  if (unreadable !== undefined)
    throw WIRE_ERRORS["query-not-utf8"].streaming({ parameter: goQuote(unreadable) });
  const isExec = path.subresource === "exec";
  return {
    // Spelt out: a leading spread costs as much as everything else here.
    namespace: path.namespace,
    pod: path.pod,
    subresource: path.subresource,
    method: request.method,
    path: request.url.pathname,
    container: query.get("container") || undefined,
    command: isExec ? query.getAll("command") : [],
    streams: {
      stdin: flagOf(query, "stdin"),
      stdout: flagOf(query, "stdout"),
      stderr: flagOf(query, "stderr"),
      tty: flagOf(query, "tty"),
    },
    ports:
      path.subresource === "portforward"
        ? query.getAll("ports").flatMap((value) => value.split(",").map(parsePortOption))
        : [],
    offer: clientOfferOf(request.headers),
    reason: reasonOf(headerValue(request.headers, REASON_HEADER), query.get(REASON_QUERY)),
    headers: request.headers,
    remoteAddress: request.remoteAddress,
    isPeerTrusted: request.isPeerTrusted ?? false,
  };
}

/**
 * Kubernetes' query booleans: absent, "0" and "false" are false, any other value is true. The first
 * value counts.
 */
function flagOf(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

const MAX_UINT16 = 65_535;

/** Parses like kube-apiserver 1.37: an unsigned 16-bit number, with its error texts. */
function parsePortOption(text: string): number {
  const isNumber = /^\d+$/.test(text);
  if (isNumber && Number(text) <= MAX_UINT16) return Number(text);
  const problem = isNumber ? "value out of range" : "invalid syntax";
  throw WIRE_ERRORS["port-invalid"].streaming({ port: goQuote(text), problem });
}

function decodeSegment(segment: string | undefined): string | undefined {
  try {
    const decoded = decodeURIComponent(segment ?? "");
    // A decoded slash or dot segment would name another object than the authorized one.
    return /[/\\]|^\.{1,2}$/.test(decoded) ? undefined : decoded;
  } catch {
    return undefined;
  }
}
