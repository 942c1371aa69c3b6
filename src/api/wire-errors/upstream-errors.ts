import {
  badRequest,
  genericError,
  internalError,
  serviceUnavailable,
} from "@sluice/client/internal/api/status";
import type { WireError } from "./wire-error.ts";

type Quoted = {
  /** In Go's quotes. */
  readonly container: string;
  readonly pod: string;
};

/** Answers that only the kubelet's listener gives, in the kubelet's words. */
export const KUBELET_ERRORS = {
  "no-stream": {
    cause: "A session asks for no stream",
    kubelet: () => genericError(400, "you must specify at least 1 of stdin, stdout, stderr"),
  },
  "port-missing": {
    cause: "An old WebSocket port-forward names no `port`",
    kubelet: () => genericError(400, 'query parameter "port" is required'),
  },
  "port-empty": {
    cause: "A `port` is empty",
    kubelet: () => genericError(400, 'query parameter "port" cannot be empty'),
  },
  "port-zero": {
    cause: "A `port` is 0",
    kubelet: ({ port }: { port: string }) => genericError(400, `port ${port} must be > 0`),
  },
  "command-failed": {
    cause: "The command of `/run` fails",
    kubelet: ({ command, exitCode, output }: { command: string; exitCode: number; output: string }) =>
      genericError(500, `command '${command}' exited with ${exitCode}: ${output}`),
  },
  "log-pod-unknown": {
    cause: "The pod of a log is unknown",
    kubelet: ({ pod }: Pick<Quoted, "pod">) => genericError(404, `pod ${pod} not found\n`),
  },
  "log-container-unknown": {
    cause: "The container of a log is unknown",
    kubelet: ({ container, pod }: Quoted) =>
      genericError(404, `container ${container} not found in pod ${pod}\n`),
  },
  "log-not-previous": {
    cause: "A previous log is asked for, and the container did not restart",
    kubelet: ({ container, pod }: Quoted) =>
      genericError(400, `previous terminated container ${container} in pod ${pod} not found`),
  },
  "log-not-started": {
    cause: "The container of a log waits to start",
    kubelet: ({ container, pod }: Quoted) =>
      genericError(400, `container ${container} in pod ${pod} is waiting to start: ContainerCreating`),
  },
  "log-unreadable": {
    cause: "The log file cannot be read",
    kubelet: ({ id }: { id: string }) =>
      genericError(400, `unable to retrieve container logs for containerd://${id}`),
  },
  "runtime-not-found": {
    cause: "The runtime does not know the object",
    kubelet: ({ error }: { error: string }) => genericError(404, error),
  },
  "runtime-exhausted": {
    cause: "The runtime has too many pending streams",
    kubelet: ({ error }: { error: string }) => genericError(429, error),
  },
  "runtime-failed": {
    cause: "The runtime fails",
    kubelet: ({ error }: { error: string }) => genericError(500, error),
  },
  "runtime-url": {
    cause: "The runtime's streaming URL cannot be used",
    kubelet: () => genericError(500, "the container runtime gave a streaming URL that cannot be used"),
  },
} as const satisfies Record<string, WireError>;

type Failed = {
  readonly error: string;
};
type FailedAt = Failed & {
  /** The upstream's name in messages: "the API server", "the kubelet". */
  readonly upstream: string;
};

const streaming = ({ error }: Failed) => genericError(500, error);
const forwarding = ({ error, upstream }: FailedAt) =>
  genericError(502, `error trying to reach ${upstream}: ${error}`);
const ingress = () => genericError(502, "the backend gave no valid answer");
const cannotBeForwarded = () => genericError(400, "the request cannot be forwarded");
const bodyIsLate = () => genericError(408, "the request's body did not come in time");

/** A failed exchange with an upstream, by the code of UpstreamError. */
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
