import type { Socket } from "node:net";
import { type HeaderList, headerValues } from "@sluice/client/internal/http/header-list";
import { networkOf } from "../listeners/connection-cap.ts";
import type { ConnectionOrigin, EdgeRules } from "../listeners/edge-rules.ts";
import { hostForMatching } from "./request-host.ts";
import { requestPathOf } from "./request-path.ts";

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
  /** HTTP/1.0 requires no Host, and load balancers' health checks often send none. */
  readonly mayOmitHost?: boolean;
}

interface BadIngressRequest {
  readonly status: 400 | 431;
  readonly problem: string;
}

const ABSOLUTE_FORM = /^https?:\/\/([^/?#]*)([^#]*)$/i;

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
  if (headers.length > maxHeaders) return { status: 431, problem: "too many header lines" };
  const absolute = ABSOLUTE_FORM.exec(target);
  const hosts = absolute === null ? headerValues(headers, "host") : [absolute[1] ?? ""];
  const [authority] = hosts;
  if (hosts.length > 1) return bad("more than one Host header");
  if (authority === undefined && !mayOmitHost) return bad("missing Host header");
  const host = authority === undefined ? "" : hostForMatching(authority);
  if (host === undefined) return bad("malformed Host header");
  const ownTarget = absolute === null ? target : (absolute[2] ?? "");
  if (ownTarget === "*" && method === "OPTIONS") {
    return { method, authority, host, path: undefined, target: ownTarget };
  }
  const path = requestPathOf(ownTarget);
  if (path === undefined) return bad("malformed request target");
  return { method, authority, host, ...path };
}

function bad(problem: string): BadIngressRequest {
  return { status: 400, problem };
}

export function originOf(socket: Socket & { encrypted?: boolean }): RequestOrigin {
  return { isTls: socket.encrypted === true, remoteAddress: socket.remoteAddress ?? "" };
}

/** The client address that shares are counted by. */
export function sourceOf(
  { remoteAddress }: RequestOrigin,
  headers: HeaderList,
  { edge }: { readonly edge: EdgeRules },
): string {
  const isTold = edge.isTrustedProxy(remoteAddress);
  return networkOf(isTold ? (edge.sourceAddressesOf(headers, remoteAddress)[0] ?? "") : remoteAddress);
}
