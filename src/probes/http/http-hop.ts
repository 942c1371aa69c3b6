import { joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import type { HTTPGetAction } from "../../api/probe-objects.ts";
import { type ProbeTarget, resolveContainerPort } from "../probe-target.ts";
import { HttpRequest, type ProbeHeaders, probeHeaders } from "./http-request.ts";
import { type ProbeUrl, probeUrl } from "./probe-url.ts";

/** One request of a probe: its destination and content. */
export interface HttpHop {
  readonly url: ProbeUrl;
  readonly headers: ProbeHeaders;
  readonly request: HttpRequest;
}

/** Undefined headers are invalid; like Go, the error is reported only when the request is due. */
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

/** Caches requests by action, which belongs to one pod and never changes. */
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
