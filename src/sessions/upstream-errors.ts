import {
  badRequest,
  genericError,
  internalError,
  type StatusError,
  serviceUnavailable,
} from "../api/status.ts";
import type { UpstreamError } from "../net/upstream-error.ts";

/** The failure in kube-apiserver's words; the kubelet has the same for its runtime. */
export function dialingError({ code, message }: UpstreamError): StatusError {
  return genericError(500, code === "dial-failed" ? `error dialing backend: ${message}` : message);
}

/** What the caller is told of an API server that gave no answer. */
export function forwardingError(error: UpstreamError): StatusError {
  if (error.code === "upgrade-refused" || error.code === "invalid-request") return badRequest(error.message);
  if (error.code === "internal-error") return internalError("the gateway failed to handle the request");
  if (error.code === "request-timeout") return genericError(408, "the request's body did not come in time");
  if (error.code === "response-timeout")
    return genericError(504, `error trying to reach the API server: ${error.message}`);
  if (error.code === "dial-failed")
    return serviceUnavailable(`error trying to reach the API server: ${error.message}`);
  return genericError(502, `error trying to reach the API server: ${error.message}`);
}
