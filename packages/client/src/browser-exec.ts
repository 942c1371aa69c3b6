import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import { BrowserCommand, type BrowserStreams } from "./browser-command.ts";
import type { BrowserCluster } from "./browser-socket.ts";
import type { CommandEnd } from "./command-end.ts";
import { attachPath, type CommandPath, execPath, type PodReference } from "./pod-paths.ts";

type BrowserContainer = Omit<PodReference, "namespace"> & { readonly namespace?: string | undefined };

/**
 * Runs a command in a container by the browser's WebSocket. Resolves with the exit code, also if it
 * is not 0. Throws ConnectError, without the reason, which browsers keep from pages, and SessionError.
 */
export async function exec(
  cluster: BrowserCluster,
  container: BrowserContainer,
  command: readonly string[],
  streams: BrowserStreams = {},
): Promise<CommandEnd> {
  return await run(cluster, execPath(named(cluster, container), command), streams);
}

/**
 * Joins the main process of a container: `streams.tty` says whether the container has a terminal.
 * Resolves with the exit code when the process ends; `streams.signal` leaves it. Throws as exec.
 */
export async function attach(
  cluster: BrowserCluster,
  container: BrowserContainer,
  streams: BrowserStreams = {},
): Promise<CommandEnd> {
  return await run(cluster, attachPath(named(cluster, container)), streams);
}

function named(cluster: BrowserCluster, container: BrowserContainer): PodReference {
  return { ...container, namespace: container.namespace ?? cluster.namespace ?? "default" };
}

async function run(cluster: BrowserCluster, path: CommandPath, streams: BrowserStreams): Promise<CommandEnd> {
  const tty = streams.tty === true;
  const requested: RequestedStreams = {
    stdin: streams.stdin !== undefined,
    stdout: streams.stdout !== undefined,
    stderr: streams.stderr !== undefined && !tty,
    tty,
  };
  return await new BrowserCommand(cluster, path(requested), streams).run();
}
