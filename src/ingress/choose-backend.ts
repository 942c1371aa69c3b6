import { genericError, type StatusError } from "@sluice/client/internal/api/status";
import { statusBody } from "@sluice/client/internal/api/status-body";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { type HeaderLine, type HeaderList, headerTokens } from "@sluice/client/internal/http/header-list";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { ConnectionOrigin } from "../listeners/edge-rules.ts";
import { cookieLine } from "./affinity.ts";
import type { EndpointUpstream } from "./endpoint-upstream.ts";
import type { IngressContext, LocalGateway } from "./ingress-context.ts";
import { type IngressRequest, withoutSegments } from "./ingress-request.ts";
import { rewrittenTarget } from "./path-rewrite.ts";
import { accepts, backendOf, type RouteBackend, type StreamingRoute } from "./route.ts";
import { DEFAULT_TUNNEL_IDLE_TIMEOUT_MS } from "./route-options.ts";
import { chooseSticky } from "./sticky-endpoints.ts";

/** The destination of a request. */
type ChosenBackend = ChosenAnswer | ChosenLocal | ChosenUpstream;

interface ChosenAnswer {
  readonly type: "answer";
  /** Undefined if no rule matched. */
  readonly route: RouteBackend | undefined;
  readonly answer: IngressAnswer;
}

interface ChosenLocal {
  readonly type: "local";
  readonly route: RouteBackend;
  readonly gateway: LocalGateway;
  readonly target: string;
}

export interface ChosenUpstream {
  readonly type: "upstream";
  readonly route: RouteBackend;
  readonly upstream: EndpointUpstream;
  readonly target: string;
  readonly appProtocol: string | undefined;
  readonly responseTimeoutMs: number | undefined;
  readonly bodyTimeoutMs: number | undefined;
  readonly tunnelIdleTimeoutMs: number;
  /** Streaming legs neither follow redirects nor return them. */
  readonly rejectRedirects: boolean;
  /** The X-Forwarded-Prefix of a rewritten path; undefined: as the client sent it. */
  readonly forwardedPrefix: string | undefined;
  /** The next endpoint to try after a failed dial. */
  next(): EndpointUpstream | undefined;
  /**
   * The Set-Cookie line for a response from this endpoint, if the client needs one; absent without
   * affinity.
   */
  readonly cookieFor?: ((served: EndpointUpstream) => string | undefined) | undefined;
}

/**
 * Routes one request: to its Service's next endpoint, or to the streaming leg that the route names.
 */
export function chooseBackend(
  request: IngressRequest,
  headers: HeaderList,
  origin: ConnectionOrigin,
  context: IngressContext,
): ChosenBackend {
  const matched = context.routes.table.match(request.host, request.path, (candidate) =>
    accepts(candidate, { method: request.method, headers }),
  );
  const route = matched && backendOf(matched);
  const refuse = (refusal: StatusError): ChosenBackend => ({
    type: "answer",
    route,
    answer: ingressAnswer(refusal, headers),
  });
  if (matched === undefined || route === undefined) return refuse(WIRE_ERRORS["path-unknown"].ingress());
  if (route.type === "streaming") {
    if (!context.isGatewayHealthy(route.name))
      return refuse(WIRE_ERRORS["streaming-gateway-silent"].ingress());
    return (
      streamingBackend(route, request.target, context) ??
      refuse(WIRE_ERRORS["streaming-gateway-unknown"].ingress())
    );
  }
  const { options } = route;
  const { redirectsToTls, rewrite } = matched.filters;
  if (redirectsToTls && !context.edge.isHttps(headers, origin)) {
    if (request.host === "") return refuse(WIRE_ERRORS["host-missing"].ingress());
    return { type: "answer", route, answer: tlsRedirect(request.host, request.target) };
  }
  // `OPTIONS *` has no path.
  const isRewritten = rewrite !== undefined && request.path !== undefined;
  const target = isRewritten ? rewrittenTarget(rewrite, request.target) : request.target;
  if (target === undefined) return refuse(WIRE_ERRORS["path-unknown"].ingress());
  const turn = context.balancer.turnFor(route);
  if (typeof turn === "string") return refuse(WIRE_ERRORS[turn].ingress());
  context.problems.judge(route, turn, headers);
  const { affinity } = options;
  const sticky = affinity && chooseSticky(turn.sticky, affinity, headers);
  const upstream = sticky?.upstream ?? turn.next();
  if (upstream === undefined)
    return refuse(WIRE_ERRORS[turn.refused.length > 0 ? "endpoints-refused" : "no-endpoints"].ingress());
  return {
    type: "upstream",
    route,
    upstream,
    target,
    appProtocol: turn.appProtocol,
    responseTimeoutMs: options.responseTimeoutMs,
    bodyTimeoutMs: options.bodyTimeoutMs,
    tunnelIdleTimeoutMs: options.tunnelIdleTimeoutMs,
    rejectRedirects: false,
    forwardedPrefix: rewrite?.forwardedPrefix,
    next: () => {
      let next = turn.next();
      // The session's own endpoint was already tried.
      if (next !== undefined && next === sticky?.upstream) next = turn.next();
      if (next !== undefined) context.metrics.endpointRetried();
      return next;
    },
    cookieFor:
      affinity === undefined
        ? undefined
        : (served) => {
            const value = sticky?.valueFor(served);
            if (value === undefined) return undefined;
            const isHttps = context.edge.isHttps(headers, origin);
            return cookieLine(affinity, value, { cookiePath: route.cookiePath, isHttps });
          },
  };
}

function streamingBackend(
  route: StreamingRoute,
  ownTarget: string,
  { streamingGateways }: IngressContext,
): ChosenBackend | undefined {
  const gateway = streamingGateways.get(route.name);
  if (gateway === undefined) return undefined;
  const target = withoutSegments(ownTarget, route.strippedSegments);
  if (gateway.type === "local") return { type: "local", route, gateway, target };
  return {
    type: "upstream",
    route,
    upstream: gateway.upstream,
    target,
    appProtocol: undefined,
    // A watch is silent while nothing changes.
    responseTimeoutMs: undefined,
    bodyTimeoutMs: undefined,
    tunnelIdleTimeoutMs: DEFAULT_TUNNEL_IDLE_TIMEOUT_MS,
    rejectRedirects: true,
    forwardedPrefix: undefined,
    next: () => undefined,
  };
}

const SERVER_NAME = "sluice";

/** An answer of the gateway itself: a line of text, or a Status for clients that ask for JSON. */
export interface IngressAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  readonly body: Buffer;
}

const REASONS: Readonly<Record<number, string>> = {
  308: "Permanent Redirect",
  400: "Bad Request",
  404: "Not Found",
  408: "Request Timeout",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export function reasonPhrase(status: number): string {
  return REASONS[status] ?? "Unknown";
}

export function ingressAnswer(
  { code: status, message }: StatusError,
  requestHeaders: HeaderList,
): IngressAnswer {
  const accepted = headerTokens(requestHeaders, "accept").map((type) => type.split(";")[0]?.trim());
  const isJson = accepted.includes("application/json");
  const body = Buffer.from(
    isJson
      ? statusBody(genericError(status, message).status)
      : `${status} ${reasonPhrase(status)}: ${message}\n`,
  );
  return {
    status,
    body,
    headers: [
      ["Content-Type", isJson ? "application/json" : "text/plain; charset=utf-8"],
      ["X-Content-Type-Options", "nosniff"],
      ["Content-Length", String(body.byteLength)],
      ...ownLines(),
    ],
  };
}

/** Redirects to the same host and target over https, with the client's default port. */
function tlsRedirect(host: string, target: string): IngressAnswer {
  const headers: HeaderLine[] = [
    ["Location", `https://${host}${target}`],
    ["Content-Length", "0"],
  ];
  return { status: 308, headers: [...headers, ...ownLines()], body: Buffer.alloc(0) };
}

/** Adds `Server` and `Date` if the backend sent none. */
export function addOwnLines(edit: HeaderEdit): void {
  if (!edit.has("server")) edit.add("Server", SERVER_NAME);
  if (!edit.has("date")) edit.add("Date", new Date().toUTCString());
}

function ownLines(): HeaderLine[] {
  return [
    ["Server", SERVER_NAME],
    ["Date", new Date().toUTCString()],
  ];
}

/** Names the protocol that the gateway expected when the backend answered in another. */
const SPEAKS = { "HTTP/1": "HTTP/2", "HTTP/2": "HTTP/1.1", TLS: "HTTP without TLS" } as const;

/** The refusal for a failed exchange; it does not reveal backend addresses. */
export function upstreamRefusal({ code, spoken }: UpstreamError): StatusError {
  return code === "malformed-response" && spoken !== undefined
    ? WIRE_ERRORS["other-protocol"].ingress({ protocol: SPEAKS[spoken] })
    : WIRE_ERRORS[code].ingress();
}
