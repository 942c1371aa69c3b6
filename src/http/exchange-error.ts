import { goDialErrorText } from "../net/go-dial-error.ts";
import { UpstreamError } from "../net/upstream-error.ts";

/** The failure of an exchange that Node's HTTP client ran, before there was a response. `address` is host:port. */
export function exchangeErrorOf(
  error: Error & { code?: string; syscall?: string },
  address: string,
): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (error.code === "HPE_HEADER_OVERFLOW") {
    return new UpstreamError("response-head-too-large", "header size limit exceeded", { cause: error });
  }
  if (error.code?.startsWith("HPE_")) {
    return new UpstreamError("malformed-response", "malformed HTTP response", { cause: error });
  }
  return new UpstreamError("closed-before-response", goDialErrorText(error, address), { cause: error });
}
