import {
  badRequest,
  genericError,
  internalError,
  serviceUnavailable,
} from "@sluice/client/internal/api/status";
import type { WireError } from "./wire-error.ts";

type Failed = {
  readonly error: string;
};
type FailedAt = Failed & {
  /** "the API server", "the kubelet". */
  readonly upstream: string;
};

const streaming = ({ error }: Failed) => genericError(500, error);
const forwarding = ({ error, upstream }: FailedAt) =>
  genericError(502, `error trying to reach ${upstream}: ${error}`);
const ingress = () => genericError(502, "the backend gave no valid answer");
const cannotBeForwarded = () => genericError(400, "the request cannot be forwarded");
const bodyIsLate = () => genericError(408, "the request's body did not come in time");

/** An exchange with an upstream failed, by the code of UpstreamError. */
export const UPSTREAM_ERRORS = {
  "dial-failed": {
    cause: "The upstream cannot be reached",
    streaming: ({ error }: Failed) => genericError(500, `error dialing backend: ${error}`),
    forwarding: ({ error, upstream }: FailedAt) =>
      serviceUnavailable(`error trying to reach ${upstream}: ${error}`),
    ingress: () => genericError(502, "no endpoint of the service could be reached"),
  },
  "response-timeout": {
    cause: "The upstream does not answer in time",
    streaming,
    forwarding: ({ error, upstream }: FailedAt) =>
      genericError(504, `error trying to reach ${upstream}: ${error}`),
    ingress: () => genericError(504, "the backend did not answer in time"),
  },
  "request-timeout": {
    cause: "The body of the request stalls",
    streaming,
    forwarding: bodyIsLate,
    ingress: bodyIsLate,
  },
  "invalid-request": {
    cause: "The request cannot be sent on",
    streaming,
    forwarding: ({ error }: FailedAt) => badRequest(error),
    ingress: cannotBeForwarded,
  },
  "upgrade-refused": {
    cause: "The upgrade cannot be sent on",
    streaming,
    forwarding: ({ error }: FailedAt) => badRequest(error),
    ingress: cannotBeForwarded,
  },
  "internal-error": {
    cause: "The gateway fails during the exchange",
    streaming,
    forwarding: (_: FailedAt) => internalError("the gateway failed to handle the request"),
    ingress: () => genericError(500, "the gateway failed to handle the request"),
  },
  "closed-before-response": {
    cause: "The upstream closes without an answer",
    streaming,
    forwarding,
    ingress,
  },
  "response-head-too-large": { cause: "The answer's head is too large", streaming, forwarding, ingress },
  "malformed-response": { cause: "The answer is not HTTP", streaming, forwarding, ingress },
  "invalid-status": { cause: "The answer's status is invalid", streaming, forwarding, ingress },
  "upgrade-mismatch": { cause: "The upstream switches to another protocol", streaming, forwarding, ingress },
  "redirect-refused": { cause: "The upstream redirects an upgrade", streaming, forwarding, ingress },
  "truncated-body": { cause: "The answer breaks off", streaming, forwarding, ingress },
  aborted: { cause: "The client leaves, and no answer reaches it", streaming, forwarding, ingress },
} as const satisfies Record<string, WireError>;
