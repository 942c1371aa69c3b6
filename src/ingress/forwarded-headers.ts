import { withForwardedOrigin } from "../http/forwarded-headers.ts";
import { type HeaderLine, type HeaderList, withHeader } from "../http/header-list.ts";
import type { IngressContext } from "./ingress-context.ts";
import type { IngressRequest, RequestOrigin } from "./ingress-request.ts";
import type { RouteBackend } from "./route-backend.ts";

/** Adds X-Forwarded-* headers; trusts those of trusted proxies only. Host stays as the client wrote it. */
export function forwardedHeaders(
  headers: HeaderList,
  { authority }: IngressRequest,
  { isTls, remoteAddress }: RequestOrigin,
  { edge }: IngressContext,
  route: RouteBackend,
): HeaderLine[] {
  const named = authority === undefined ? headers : withHeader(headers, "Host", authority);
  const lines = withForwardedOrigin(named, {
    peerAddress: remoteAddress,
    isPeerTrusted: edge.isTrustedProxy(remoteAddress),
    protocol: isTls ? "https" : "http",
    host: authority,
  });
  const prefix = route.type === "service" ? route.rewrite?.forwardedPrefix : undefined;
  return prefix === undefined ? lines : withHeader(lines, "X-Forwarded-Prefix", prefix);
}
