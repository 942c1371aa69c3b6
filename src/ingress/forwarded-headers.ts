import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { addForwardedOrigin } from "../http/forwarded-headers.ts";
import type { IngressContext } from "./ingress-context.ts";
import type { IngressRequest, RequestOrigin } from "./ingress-request.ts";

/** Adds X-Forwarded-* headers; trusts those of trusted proxies only. Host stays as the client wrote it. */
export function addForwardedHeaders(
  edit: HeaderEdit,
  { authority }: IngressRequest,
  { isTls, remoteAddress }: RequestOrigin,
  { edge }: IngressContext,
  prefix: string | undefined,
): void {
  if (authority !== undefined) edit.set("Host", authority);
  addForwardedOrigin(edit, {
    peerAddress: remoteAddress,
    isPeerTrusted: edge.isTrustedProxy(remoteAddress),
    protocol: isTls ? "https" : "http",
    host: authority,
  });
  if (prefix !== undefined) edit.set("X-Forwarded-Prefix", prefix);
}
