import type { ResponseHead } from "../../protocols/http1/index.ts";
import { UpstreamError } from "../net/upstream-error.ts";
import { hasHeader, headerListOf } from "./header-list.ts";

/** RFC 9110 section 15: a status above is none, HTTP/2 clients cannot be given it, and all clients get the same answer. */
export const MAX_STATUS = 599;

/**
 * Why the response to a plain request is not handed on, if it is not: an upgrade that was not requested, a status that is none, or a redirect
 * where none may be followed.
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
