import type { Socket } from "node:net";
import type { StatusError } from "@sluice/client/internal/api/status";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { type HeaderList, headerValues } from "@sluice/client/internal/http/header-list";
import { beginTrace } from "@sluice/client/internal/http/trace-headers";
import type { RequestTrace, Tracing } from "@sluice/client/internal/observability/trace";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { addForwardedOrigin } from "../http/forwarded-headers.ts";
import { type ConnectionOrigin, type EdgeRules, networkOf } from "../listeners/edge-rules.ts";
import type { RouteNames } from "../observability/ingress-metrics.ts";

/** A request as the router sees it. */
export interface IngressRequest {
  readonly method: string;
  /** As the client wrote it, with port and case. Undefined if an HTTP/1.0 client sent none. */
  readonly authority: string | undefined;
  /** Empty without an authority; rules without a host match it. */
  readonly host: string;
  /** Undefined for targets without a path: `OPTIONS *`. */
  readonly path: string | undefined;
  /** The target for the backend, in origin-form. */
  readonly target: string;
}

/** The request's connection. */
export interface RequestOrigin extends ConnectionOrigin {
  /** The peer is a trusted proxy, which reports its clients' addresses. */
  readonly isProxy: boolean;
  /** The peer's network, against which shares are counted unless it is a trusted proxy. */
  readonly network: string;
}

interface BadIngressRequest {
  readonly refusal: StatusError;
}

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)([^#]*)$/i;

/**
 * A host name or IPv4 address. Also allows `_` and hyphens at a label's ends, which RFC 1123
 * forbids and real hosts use.
 */
const HOST = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;

const IPV6_LITERAL = /^\[[0-9a-f:.]{2,45}\]$/;

const UNRESERVED = /^%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])$/;

// Printable characters that a path must not contain (RFC 3986 section 3.3), but that some clients
// send unescaped.
const EXCLUDED = /["<>\\^`{|}]/;

const BROKEN_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

const ESCAPE_OR_EXCLUDED = /%[0-9A-Fa-f]{2}|["<>\\^`{|}]/g;

/** Escapes `?` and `#`, too, because they would end the path. */
const NOT_IN_PATH = /%(?![0-9A-Fa-f]{2})|[^\x21\x24-\x7e]|[<>?\\^`{|}]/gu;

// A request target has no controls, spaces, `#` or non-ASCII characters (RFC 9112 section 3.2).
const TARGET = /^[\x21\x22\x24-\x7e]*$/;

/**
 * Reads a request's host and path. In absolute-form both come from the target, and Host is ignored
 * (RFC 9112 section 3.2.2). Otherwise there must be exactly one Host, or none with `mayOmitHost`.
 */
export function readIngressRequest(
  method: string,
  target: string,
  headers: HeaderList,
  maxHeaders: number,
  mayOmitHost = false,
): IngressRequest | BadIngressRequest {
  if (headers.length > maxHeaders) return { refusal: WIRE_ERRORS["too-many-headers"].ingress() };
  const absolute = ABSOLUTE_FORM.exec(target);
  const hosts = absolute === null ? headerValues(headers, "host") : [absolute[1] ?? ""];
  const [authority] = hosts;
  if (hosts.length > 1) return { refusal: WIRE_ERRORS["host-twice"].ingress() };
  if (authority === undefined && !mayOmitHost) return { refusal: WIRE_ERRORS["host-missing"].ingress() };
  const host = authority === undefined ? "" : hostForMatching(authority);
  if (host === undefined) return { refusal: WIRE_ERRORS["host-malformed"].ingress() };
  const ownTarget = absolute === null ? target : (absolute[2] ?? "");
  if (ownTarget === "*" && method === "OPTIONS") {
    return { method, authority, host, path: undefined, target: ownTarget };
  }
  const read = requestPathOf(ownTarget);
  if (read === undefined) return { refusal: WIRE_ERRORS["target-not-path"].ingress() };
  return { method, authority, host, path: read.path, target: read.target };
}

const origins = new WeakMap<Socket, RequestOrigin>();

/** Judges a connection's peer once for all of its requests. */
export function originOf(socket: Socket & { encrypted?: boolean }, edge: EdgeRules): RequestOrigin {
  const known = origins.get(socket);
  if (known !== undefined) return known;
  const { encrypted: isTls = false, remoteAddress = "" } = socket;
  const isProxy = edge.isTrustedProxy(remoteAddress);
  const origin = { isTls, remoteAddress, isProxy, network: networkOf(remoteAddress) };
  origins.set(socket, origin);
  return origin;
}

/** The client address against which shares are counted. */
export function sourceOf(
  { remoteAddress, isProxy, network }: RequestOrigin,
  headers: HeaderList,
  { edge }: { readonly edge: EdgeRules },
): string {
  return isProxy ? networkOf(edge.sourceAddressesOf(headers, remoteAddress)[0] ?? "") : network;
}

/**
 * Normalizes an authority for matching: lower case, without port and one trailing dot. Undefined if
 * it has no valid host. The backend gets the original.
 */
export function hostForMatching(authority: string): string | undefined {
  const withoutPort = /^(.*?)(?::[0-9]{0,5})?$/s.exec(authority)?.[1] ?? "";
  const host = withoutPort.toLowerCase();
  if (IPV6_LITERAL.test(host)) return host;
  const name = host.endsWith(".") ? host.slice(0, -1) : host;
  return HOST.test(name) ? name : undefined;
}

/**
 * The `*.suffix` rule that may match a host: the star stands for exactly one label (KEP-1453).
 * Undefined if the host has a single label.
 */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf(".");
  return dot <= 0 || host.startsWith("[") ? undefined : `*${host.slice(dot)}`;
}

/** A request's path for routing, and its target for the backend. */
interface RequestPath {
  /** Normalized (RFC 3986 section 6.2.2), without dot segments and query. */
  readonly path: string;
  /**
   * Path and query for the backend: the original bytes, or the normalized ones if there were dot
   * segments.
   */
  readonly target: string;
}

/**
 * Reads an origin-form target's path; undefined for a bad request. The backend gets the path that
 * was matched: `%2F` and `%5C` stay encoded, encoded dots count as dots, and dot segments are
 * removed.
 */
export function requestPathOf(target: string): RequestPath | undefined {
  const queryAt = target.indexOf("?");
  const raw = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? "" : target.slice(queryAt);
  if (!TARGET.test(target)) return undefined;
  if (raw === "") return { path: "/", target: `/${query}` };
  if (!raw.startsWith("/") || BROKEN_ESCAPE.test(raw)) return undefined;
  const path = raw.includes("%") || EXCLUDED.test(raw) ? normalized(raw) : raw;
  if (!path.includes("/.")) return { path, target };
  const resolved = withoutDotSegments(path);
  if (resolved === undefined) return undefined;
  return { path: resolved, target: resolved === path ? target : `${resolved}${query}` };
}

/**
 * A rule's path, normalized like `RequestPath.path`, so that it matches a request for the same
 * text.
 */
export function rulePathOf(path: string): string {
  const escaped = path.replace(NOT_IN_PATH, percentEncoded);
  return escaped.includes("%") ? normalized(escaped) : escaped;
}

/** Removes the target's first `count` segments. The rest always has a path. */
export function withoutSegments(target: string, count: number): string {
  const left = remainderOf(target, count);
  return left.startsWith("/") ? left : `/${left}`;
}

/**
 * The part after the first `count` segments: from the next slash on, or only the query. Counts
 * segments, because a client may spell them differently from the rule.
 */
export function remainderOf(target: string, count: number): string {
  const queryAt = target.indexOf("?");
  const pathEnd = queryAt === -1 ? target.length : queryAt;
  let start = 0;
  for (let left = count; left > 0 && start < pathEnd; left--) {
    const slash = target.indexOf("/", start + 1);
    start = slash === -1 || slash > pathEnd ? pathEnd : slash;
  }
  return target.slice(start);
}

/**
 * Decodes unreserved characters, writes other escapes in capitals, and escapes forbidden
 * characters.
 */
function normalized(path: string): string {
  return path.replace(ESCAPE_OR_EXCLUDED, (found) => {
    if (found.length === 1) return encodeURIComponent(found);
    const triplet = found.toUpperCase();
    return UNRESERVED.test(triplet) ? decodeURIComponent(triplet) : triplet;
  });
}

/** In UTF-8 a lone surrogate becomes U+FFFD. */
function percentEncoded(character: string): string {
  return encodeURIComponent(/\p{Surrogate}/u.test(character) ? "\ufffd" : character);
}

/** RFC 3986 section 5.2.4, but undefined if `..` would climb above the root. */
function withoutDotSegments(path: string): string | undefined {
  const segments = path.slice(1).split("/");
  const kept: string[] = [];
  for (const [index, segment] of segments.entries()) {
    if (segment === "..") {
      if (kept.pop() === undefined) return undefined;
    } else if (segment !== ".") {
      kept.push(segment);
    }
    const isLast = index === segments.length - 1;
    if (isLast && (segment === "." || segment === "..")) kept.push("");
  }
  return `/${kept.join("/")}`;
}

/**
 * Adds X-Forwarded-* headers; trusts those of trusted proxies only. Host stays as the client wrote
 * it.
 */
export function addForwardedHeaders(
  edit: HeaderEdit,
  { authority }: IngressRequest,
  { isTls, remoteAddress, isProxy }: RequestOrigin,
  prefix: string | undefined,
): void {
  if (authority !== undefined) edit.set("Host", authority);
  addForwardedOrigin(edit, {
    peerAddress: remoteAddress,
    isPeerTrusted: isProxy,
    protocol: isTls ? "https" : "http",
    host: authority,
  });
  if (prefix !== undefined) edit.set("X-Forwarded-Prefix", prefix);
}

/** Traces an exchange of the front door under its rule's names; undefined if tracing is off. */
export function traceExchange(
  request: { readonly method: string; readonly target: string; readonly headers: HeaderList },
  { isTls, remoteAddress }: ConnectionOrigin,
  route: { readonly names: RouteNames } | undefined,
  { tracing, edge }: { readonly tracing?: Tracing | undefined; readonly edge: EdgeRules },
): RequestTrace | undefined {
  if (tracing === undefined) return undefined;
  const { method, headers } = request;
  const addresses = edge.sourceAddressesOf(headers, remoteAddress);
  const trace = beginTrace(tracing, request, { encrypted: isTls }, addresses);
  if (route === undefined) return trace;
  const { namespace, ingress, service } = route.names;
  trace?.rename(`${method} ${namespace}/${ingress}`);
  trace?.set({ "k8s.namespace.name": namespace, "k8s.ingress.name": ingress, "k8s.service.name": service });
  return trace;
}
