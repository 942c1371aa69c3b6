import type { ProtocolError } from "@sluice/protocols";
import { MalformedResponse } from "@sluice/protocols/http1";
import { goDialErrorText } from "../../net/go-dial-error.ts";
import { UpstreamError } from "../../net/upstream-error.ts";

const MAX_QUOTED_CHARACTERS = 64;

/** Converts an error of Node's HTTP client before the response. `address` is host:port. */
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

/**
 * Worded as Go does. Quotes a refused header line only up to its colon, since the rest may be a
 * credential.
 */
export function responseErrorOf(error: ProtocolError): UpstreamError {
  if (error.code !== "malformed-message") {
    return new UpstreamError("response-head-too-large", "header size limit exceeded");
  }
  if (!(error instanceof MalformedResponse)) return new UpstreamError("malformed-response", error.message);
  const shown = error.isOfFieldLine
    ? (line: string) => line.slice(0, Math.max(line.indexOf(":"), 0))
    : String;
  const quote = (text: string): string => JSON.stringify(shown(text).slice(0, MAX_QUOTED_CHARACTERS));
  return new UpstreamError("malformed-response", error.quoting(quote), { spoken: error.foreignProtocol });
}
