import { type Cluster, type ContainerName, executorFor, referenceIn } from "./cluster.ts";
import type { CommandEnd } from "./command-end.ts";
import type { CommandStreams } from "./command-run.ts";
import type { ExecutorOptions } from "./executors.ts";
import { execPath } from "./pod-paths.ts";

/**
 * Runs a command in a container, over WebSocket or SPDY. Streams that are absent are not requested.
 * Resolves with the exit code, also if it is not 0. Throws ConnectError and SessionError.
 */
export function exec(
  cluster: Cluster,
  container: ContainerName,
  command: readonly string[],
  streams: CommandStreams = {},
  options: ExecutorOptions = {},
): Promise<CommandEnd> {
  return executorFor(cluster.target, execPath(referenceIn(cluster, container), command), options).stream(
    streams,
  );
}
