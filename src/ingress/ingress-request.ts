import type { Socket } from "node:net";
import type { StatusError } from "@sluice/client/internal/api/status";
import { type HeaderList, headerValues } from "@sluice/client/internal/http/header-list";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
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
  readonly refusal: StatusError;
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
  const path = requestPathOf(ownTarget);
  if (path === undefined) return { refusal: WIRE_ERRORS["target-not-path"].ingress() };
  return { method, authority, host, ...path };
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
