import type { ResponseHead } from "@sluice/protocols/http1";
import { UpstreamError } from "../net/upstream-error.ts";
import { hasHeader, headerListOf } from "./header-list.ts";

/**
 * RFC 9110 section 15: no status is above 599. HTTP/2 clients cannot get such a status, so no client
 * does.
 */
export const MAX_STATUS = 599;

/**
 * Why a plain request's response is not forwarded, if it is not: an unrequested upgrade, an invalid
 * status, or a redirect that must not be followed.
 */
export function headRefusal(
  { status, headers }: Pick<ResponseHead, "status" | "headers">,
  rejectsRedirects: boolean,
): UpstreamError | undefined {
  if (status === 101) return new UpstreamError("invalid-status", "unexpected upgrade");
  if (status > MAX_STATUS) return new UpstreamError("invalid-status", `invalid status code ${status}`);
  const isRedirect = rejectsRedirects && status >= 300 && status < 400;
  return isRedirect && hasHeader(headerListOf(headers), "location")
    ? new UpstreamError("redirect-refused", REDIRECT_REFUSED)
    : undefined;
}

const REDIRECT_REFUSED = "the backend attempted to redirect this request, which is not permitted";
