import type { ResponseHead } from "../../protocols/http1/index.ts";
import { hasHeader, headerListOf } from "./header-list.ts";
import { UpstreamError } from "./upstream-error.ts";

/** Why the response to a plain request is not handed on, if it is not: an upgrade that nobody asked for, or a redirect where none may be followed. */
export function headRefusal(
  { status, headers }: ResponseHead,
  rejectsRedirects: boolean,
): UpstreamError | undefined {
  if (status === 101) return new UpstreamError("invalid-status", "unexpected upgrade");
  const isRedirect = rejectsRedirects && status >= 300 && status < 400;
  return isRedirect && hasHeader(headerListOf(headers), "location")
    ? new UpstreamError("redirect-refused", REDIRECT_REFUSED)
    : undefined;
}

const REDIRECT_REFUSED = "the backend attempted to redirect this request, which is not permitted";
