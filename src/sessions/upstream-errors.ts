import type { StatusError } from "@sluice/client/internal/api/status";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/** The failure as kube-apiserver words it; the kubelet words a runtime's failure the same way. */
export function dialingError({ code, message: error }: UpstreamError): StatusError {
  return WIRE_ERRORS[code].streaming({ error });
}

/** The answer to the client if the upstream gave none; `upstream` names it. */
export function forwardingError(
  { code, message: error }: UpstreamError,
  upstream = "the API server",
): StatusError {
  return WIRE_ERRORS[code].forwarding({ error, upstream });
}
