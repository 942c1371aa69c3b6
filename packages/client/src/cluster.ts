import { Readable } from "node:stream";
import type { CommandEnd } from "./command-end.ts";
import type { CommandStreams } from "./command-run.ts";
import {
  type Executor,
  type ExecutorOptions,
  FallbackExecutor,
  SpdyExecutor,
  WebSocketExecutor,
} from "./executors.ts";
import { asConnectError, getBody } from "./get-object.ts";
import { loadKubeconfig } from "./kubernetes/kubeconfig.ts";
import type { KubeconfigOverrides } from "./kubernetes/kubeconfig-overrides.ts";
import { type CommandPath, execPath, logPath, type PodReference } from "./pod-paths.ts";
import { kubeconfigTarget, type Target } from "./target.ts";

/** An API server, and the namespace of pods that are named without one. */
export interface Cluster {
  readonly target: Target;
  readonly namespace: string;
}

/** A container by name; `namespace` defaults to the cluster's, `container` to the pod's default one. */
export type ContainerName = Omit<PodReference, "namespace"> & { readonly namespace?: string | undefined };

/**
 * Opens the cluster of a kubeconfig, by default kubectl's: $KUBECONFIG, ~/.kube/config, or the
 * service account of this pod. `selection` is a context, or kubectl's flags. Throws
 * ConfigurationError and CredentialsError.
 */
export async function openCluster(file?: string, selection?: string | KubeconfigOverrides): Promise<Cluster> {
  const kubeconfig = await loadKubeconfig(file, selection);
  return { target: kubeconfigTarget(kubeconfig), namespace: kubeconfig.namespace };
}

export function referenceIn(cluster: Cluster, name: ContainerName): PodReference {
  return { ...name, namespace: name.namespace ?? cluster.namespace };
}

/** Runs commands as kubectl does: over WebSocket, then over SPDY if client-go would fall back. */
export function executorFor(target: Target, path: CommandPath, options: ExecutorOptions = {}): Executor {
  return new FallbackExecutor(
    new WebSocketExecutor(target, path, options),
    new SpdyExecutor(target, path, options),
  );
}

/**
 * Runs a command in a container, over WebSocket or SPDY. Streams that are absent are not requested.
 * Resolves with the exit code, also if it is not 0. Throws ConnectError, SessionError and
 * CredentialsError.
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

/** The API's PodLogOptions. */
export interface LogOptions {
  /** Waits for new lines until the container ends. Default: false. */
  readonly follow?: boolean | undefined;
  /** The log of the container before its last restart. Default: false. */
  readonly previous?: boolean | undefined;
  /** Each line begins with its time. Default: false. */
  readonly timestamps?: boolean | undefined;
  /** Lines from the end. Default: all. */
  readonly tailLines?: number | undefined;
  /** Only lines of the last seconds. Default: all. */
  readonly sinceSeconds?: number | undefined;
  /** Only lines from this time on, in RFC 3339. Default: all. */
  readonly sinceTime?: string | undefined;
  /** Ends after this many bytes. Default: no limit. */
  readonly limitBytes?: number | undefined;
  /** Ends the log with ConnectError "aborted". Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * A container's log as a stream of bytes. The stream fails with ConnectError if the connection
 * breaks off, so its end is the log's. Throws ConnectError if the server refuses, and
 * CredentialsError.
 */
export async function readLog(
  cluster: Cluster,
  container: ContainerName,
  { signal = new AbortController().signal, ...query }: LogOptions = {},
): Promise<Readable> {
  const body = await getBody(cluster.target, logPath(referenceIn(cluster, container), query), { signal });
  return Readable.from(chunksOf(body), { objectMode: false });
}

async function* chunksOf(body: Readable): AsyncGenerator<Buffer, void, void> {
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) yield chunk;
  } catch (error) {
    throw asConnectError(error, false);
  }
}
