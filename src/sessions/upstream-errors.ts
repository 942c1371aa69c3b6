import {
  badRequest,
  genericError,
  internalError,
  type StatusError,
  serviceUnavailable,
} from "@sluice/client/internal/api/status";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";

/** The failure as kube-apiserver words it; the kubelet words a runtime's failure the same way. */
export function dialingError({ code, message }: UpstreamError): StatusError {
  return genericError(500, code === "dial-failed" ? `error dialing backend: ${message}` : message);
}

/** The answer to the client if the upstream gave none; `upstream` names it. */
export function forwardingError(error: UpstreamError, upstream = "the API server"): StatusError {
  const text = `error trying to reach ${upstream}: ${error.message}`;
  if (error.code === "upgrade-refused" || error.code === "invalid-request") return badRequest(error.message);
  if (error.code === "internal-error") return internalError("the gateway failed to handle the request");
  if (error.code === "request-timeout") return genericError(408, "the request's body did not come in time");
  if (error.code === "response-timeout") return genericError(504, text);
  if (error.code === "dial-failed") return serviceUnavailable(text);
  return genericError(502, text);
}
