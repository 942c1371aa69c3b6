import { genericError } from "@sluice/client/internal/api/status";
import type { WireError } from "./wire-error.ts";

type Quoted = {
  /** In Go's quotes. */
  readonly container: string;
  readonly pod: string;
};

/** Answers of the kubelet's listener alone, in the kubelet's words. */
export const KUBELET_ERRORS = {
  "no-stream": {
    cause: "A session without a stream",
    kubelet: () => genericError(400, "you must specify at least 1 of stdin, stdout, stderr"),
  },
  "port-missing": {
    cause: "An old WebSocket port-forward without `port`",
    kubelet: () => genericError(400, 'query parameter "port" is required'),
  },
  "port-empty": {
    cause: "An empty `port`",
    kubelet: () => genericError(400, 'query parameter "port" cannot be empty'),
  },
  "port-zero": {
    cause: "Port 0",
    kubelet: ({ port }: { port: string }) => genericError(400, `port ${port} must be > 0`),
  },
  "command-failed": {
    cause: "`/run` of a command that fails",
    kubelet: ({ command, exitCode, output }: { command: string; exitCode: number; output: string }) =>
      genericError(500, `command '${command}' exited with ${exitCode}: ${output}`),
  },
  "log-pod-unknown": {
    cause: "The log of an unknown pod",
    kubelet: ({ pod }: Pick<Quoted, "pod">) => genericError(404, `pod ${pod} not found\n`),
  },
  "log-container-unknown": {
    cause: "The log of an unknown container",
    kubelet: ({ container, pod }: Quoted) =>
      genericError(404, `container ${container} not found in pod ${pod}\n`),
  },
  "log-not-previous": {
    cause: "The previous log of a container that did not restart",
    kubelet: ({ container, pod }: Quoted) =>
      genericError(400, `previous terminated container ${container} in pod ${pod} not found`),
  },
  "log-not-started": {
    cause: "The log of a container that waits",
    kubelet: ({ container, pod }: Quoted) =>
      genericError(400, `container ${container} in pod ${pod} is waiting to start: ContainerCreating`),
  },
  "log-unreadable": {
    cause: "A log file that cannot be read",
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
    cause: "The runtime refuses",
    kubelet: ({ error }: { error: string }) => genericError(500, error),
  },
  "runtime-url": {
    cause: "The runtime's streaming URL cannot be used",
    kubelet: () => genericError(500, "the container runtime gave a streaming URL that cannot be used"),
  },
} as const satisfies Record<string, WireError>;
