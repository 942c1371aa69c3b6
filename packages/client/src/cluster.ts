import type { ExecutorOptions } from "./executors.ts";
import { type Executor, FallbackExecutor, SpdyExecutor, WebSocketExecutor } from "./executors.ts";
import { kubeconfigTarget } from "./kubeconfig-target.ts";
import { loadKubeconfig } from "./kubernetes/kubeconfig.ts";
import type { KubeconfigOverrides } from "./kubernetes/kubeconfig-overrides.ts";
import type { CommandPath, PodReference } from "./pod-paths.ts";
import type { Target } from "./target.ts";

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
