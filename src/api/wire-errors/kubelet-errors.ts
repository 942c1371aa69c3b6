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
