import { goQuote } from "@sluice/client/internal/api/go-json";
import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { HTTPGetAction, HTTPHeader } from "../../api/probe-objects.ts";
import { type ProbeTarget, resolveContainerPort } from "../probe-target.ts";
import { HttpRequest } from "./http-request.ts";

const NOTHING: GoUrl = {
  user: undefined,
  opaque: undefined,
  pathname: "",
  query: undefined,
  fragment: undefined,
};

interface ProbeHeaders {
  /** Canonical header names, repeated ones in order; without Host and Connection. */
  readonly lines: readonly (readonly [name: string, value: string])[];
  /** The Host header's value; undefined means the dialled address. */
  readonly host: string | undefined;
}

/** One request of a probe: its destination and content. */
export interface HttpHop {
  readonly url: ProbeUrl;
  readonly headers: ProbeHeaders;
  readonly request: HttpRequest;
}

/**
 * Undefined if the headers are invalid. As in Go, the error is reported only when the request would
 * be sent.
 */
export interface FirstHop {
  readonly url: ProbeUrl;
  readonly hop: HttpHop | undefined;
  readonly headerRefusal: string;
}

interface PreparedHop extends FirstHop {
  readonly host: string;
  readonly containerPorts: ProbeTarget["containerPorts"];
  readonly userAgent: string;
}

/** Caches requests by action: an action belongs to one pod and never changes. */
const prepared = new WeakMap<HTTPGetAction, PreparedHop>();

/** Throws Error in the kubelet's words for an invalid port or path. */
export function firstHop(
  action: HTTPGetAction,
  { host, containerPorts }: ProbeTarget,
  userAgent: string,
): FirstHop {
  const known = prepared.get(action);
  if (known?.host === host && known.userAgent === userAgent) {
    const isByName = typeof action.port === "string";
    if (!isByName || known.containerPorts === containerPorts) return known;
  }
  const port = resolveContainerPort(action.port, containerPorts);
  const scheme = (action.scheme || "HTTP").toLowerCase();
  const url = probeUrl(scheme, action.host || host, port, action.path ?? "/");
  let hop: HttpHop | undefined;
  let headerRefusal = "";
  try {
    hop = hopTo(url, probeHeaders(action.httpHeaders ?? [], userAgent));
  } catch (error) {
    headerRefusal = (error as Error).message;
  }
  const made = { host, containerPorts, userAgent, url, hop, headerRefusal };
  prepared.set(action, made);
  return made;
}

export function hopTo(url: ProbeUrl, headers: ProbeHeaders): HttpHop {
  const authority = headers.host ?? authorityOf(url);
  return { url, headers, request: new HttpRequest(url.scheme, authority, url.requestTarget, headers.lines) };
}

function authorityOf({ text, host, port }: ProbeUrl): string {
  return /^[a-z]+:\/\/(?:[^/?#@]*@)?([^/?#]*)/.exec(text)?.[1] ?? joinHostPort(host, port);
}

/** The destination of one HTTP probe request. */
export interface ProbeUrl {
  readonly scheme: string;
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
  /** The request line's target, or `:path`. */
  readonly requestTarget: string;
  /** The URL as Go prints it in errors. */
  readonly text: string;
  /** Set if Go's client refuses the URL before it dials. */
  readonly refusal?: string;
}

/**
 * The URL of an httpGet action. The path is parsed as a URL, so it may contain a query; if it does
 * not parse, it is used literally. A scheme or host in it is ignored in favour of the action's.
 */
export function probeUrl(scheme: string, host: string, port: number, path: string): ProbeUrl {
  const { user, opaque, pathname, query, fragment } = parseGoUrl(path) ?? {
    ...NOTHING,
    pathname: escapePath(path, true),
  };
  const end = `${query === undefined ? "" : `?${query}`}${fragment === undefined ? "" : `#${fragment}`}`;
  if (opaque !== undefined) {
    const text = `${scheme}:${opaque}${end}`;
    return { scheme, host, port, requestTarget: opaque, text, refusal: "http: no Host in request URL" };
  }
  const rooted = pathname === "" || pathname.startsWith("/") ? pathname : `/${pathname}`;
  const address = joinHostPort(host, port);
  return {
    scheme,
    host,
    port,
    requestTarget: `${rooted === "" ? "/" : rooted}${query === undefined ? "" : `?${query}`}`,
    text: `${scheme}://${user === undefined ? "" : `${user}@`}${address}${rooted}${end}`,
  };
}

interface GoUrl {
  readonly user: string | undefined;
  readonly opaque: string | undefined;
  readonly pathname: string;
  readonly query: string | undefined;
  readonly fragment: string | undefined;
}

/** The parts of Go's url.Parse that a probe's path can exercise; undefined if Go's parser fails. */
function parseGoUrl(text: string): GoUrl | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is refused
  if (/[\x00-\x1f\x7f]/.test(text)) return undefined;
  const [, beforeFragment = "", fragment] = /^([^#]*)(?:#(.*))?$/s.exec(text) ?? [];
  const [, scheme, afterScheme = ""] = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(.*)$/s.exec(beforeFragment) ?? [];
  const [, beforeQuery = "", query] = /^([^?]*)(?:\?(.*))?$/s.exec(afterScheme) ?? [];
  if (scheme !== undefined && !beforeQuery.startsWith("/")) {
    return { ...NOTHING, opaque: beforeQuery, query, fragment };
  }
  if (scheme === undefined && /^[^/]*:/.test(beforeQuery)) return undefined;
  const [, authority, path = ""] = /^(?:\/\/([^/]*))?(.*)$/s.exec(beforeQuery) ?? [];
  if (/%(?![0-9A-Fa-f]{2})/.test(path)) return undefined;
  const user = authority?.includes("@") ? authority.slice(0, authority.lastIndexOf("@")) : undefined;
  return { ...NOTHING, user, pathname: escapePath(path, false), query, fragment };
}

/**
 * Go's EscapedPath: escapes characters that a path may not contain. In a literal path, `%` is one
 * of them.
 */
function escapePath(path: string, isLiteral: boolean): string {
  const kept = isLiteral ? /[^A-Za-z0-9\-_.~$&+,/:;=@]/gu : /[^A-Za-z0-9\-_.~$&+,/:;=@!'()*[\]%]/gu;
  return path.replace(kept, percentEncoded);
}

function percentEncoded(character: string): string {
  return Array.from(
    Buffer.from(character),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join("");
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is refused
const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f]/;

/** Go's client writes these itself or drops them. */
const NOT_SENT = new Set(["Host", "Content-Length", "Transfer-Encoding", "Trailer"]);

/**
 * The action's headers, plus User-Agent and Accept unless it names them. An empty value removes
 * either. Throws Error in Go's words for invalid names and values.
 */
function probeHeaders(given: readonly HTTPHeader[], userAgent: string): ProbeHeaders {
  const canonical = given.map(({ name, value }) => [canonicalName(name), value] as const);
  for (const [name, value] of canonical) {
    if (!TOKEN.test(name)) throw new Error(`net/http: invalid header field name ${goQuote(name)}`);
    if (CONTROLS.test(value)) throw new Error(`net/http: invalid header field value for ${goQuote(name)}`);
  }
  const first = (name: string) => canonical.find(([other]) => other === name)?.[1];
  const agent = first("User-Agent") ?? userAgent;
  const lines = canonical
    .filter(([name]) => !NOT_SENT.has(name) && name !== "User-Agent")
    // Only the first Accept decides whether it is removed.
    .filter(([name]) => name !== "Accept" || first("Accept") !== "")
    .map(([name, value]) => [name, value.trim()] as const);
  return {
    lines: [
      ...(agent === "" ? [] : [["User-Agent", agent] as const]),
      ...(first("Accept") === undefined ? [["Accept", "*/*"] as const] : []),
      ...lines,
    ],
    host: first("Host") || undefined,
  };
}

/** `x-header-NAME` -> `X-Header-Name`; a name that is not a token stays unchanged. */
function canonicalName(name: string): string {
  if (!TOKEN.test(name)) return name;
  return name.toLowerCase().replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
