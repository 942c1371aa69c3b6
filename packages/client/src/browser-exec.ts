import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import { bearerSubprotocol } from "@sluice/protocols/websocket";
import { BrowserCommand, type BrowserStreams } from "./browser-command.ts";
import type { CommandEnd } from "./command-end.ts";
import { execPath, type PodReference } from "./pod-paths.ts";

/** A server that pages may reach, and what they show it. */
export interface BrowserCluster {
  /** As `https://gateway.example.com`. */
  readonly url: string;
  /** Sent as a subprotocol, as Kubernetes takes it. Absent: the browser's certificate or cookies count. */
  readonly token?: string | undefined;
  /** Default: "default". */
  readonly namespace?: string | undefined;
}

/**
 * Runs a command in a container by the browser's WebSocket. Resolves with the exit code, also if it
 * is not 0. Throws ConnectError, without the reason, which browsers keep from pages, and SessionError.
 */
export async function exec(
  cluster: BrowserCluster,
  container: Omit<PodReference, "namespace"> & { readonly namespace?: string | undefined },
  command: readonly string[],
  streams: BrowserStreams = {},
): Promise<CommandEnd> {
  const tty = streams.tty === true;
  const requested: RequestedStreams = {
    stdin: streams.stdin !== undefined,
    stdout: streams.stdout !== undefined,
    stderr: streams.stderr !== undefined && !tty,
    tty,
  };
  const namespace = container.namespace ?? cluster.namespace ?? "default";
  const path = execPath({ ...container, namespace }, command)(requested);
  const url = cluster.url.replace(/^http/, "ws").replace(/\/$/, "") + path;
  const protocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"];
  if (cluster.token !== undefined) protocols.push(bearerSubprotocol(cluster.token));
  return await new BrowserCommand(url, protocols, streams).run();
}
