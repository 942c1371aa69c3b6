import type { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import {
  CONTAINER_STATE,
  type CriRuntime,
  type PodSandbox,
  type RuntimeContainer,
  SANDBOX_READY,
} from "./cri-runtime.ts";

/**
 * The kubelet's labels on its sandboxes and containers. A sandbox without them does not belong to
 * Kubernetes.
 */
export const POD_LABELS = {
  name: "io.kubernetes.pod.name",
  namespace: "io.kubernetes.pod.namespace",
  uid: "io.kubernetes.pod.uid",
  container: "io.kubernetes.container.name",
} as const;

interface PodName {
  readonly namespace: string;
  readonly pod: string;
  /** Absent: any pod that currently has the name. */
  readonly uid?: string | undefined;
}

/**
 * The pod's sandbox: a ready one first, then the newest, because replaced ones stay listed for a
 * while. Throws the kubelet's 404, or `otherUid` if only pods with another uid have the name.
 */
export async function findSandbox(
  runtime: CriRuntime,
  { namespace, pod, uid }: PodName,
  otherUid: StatusError = WIRE_ERRORS["pod-replaced"].kubelet(),
): Promise<PodSandbox> {
  const sandboxes = await runtime.listPodSandboxes({
    [POD_LABELS.name]: pod,
    [POD_LABELS.namespace]: namespace,
  });
  if (sandboxes.length === 0) throw WIRE_ERRORS["pod-unknown"].kubelet();
  const wanted = sandboxes.filter((sandbox) => uid === undefined || uidOf(sandbox) === uid);
  const [best] = wanted.toSorted(bySandboxAge);
  if (best === undefined) throw otherUid;
  return best;
}

/** A pod's containers with this name: a running one first, then the latest attempt. */
export async function listAttempts(
  runtime: CriRuntime,
  sandbox: PodSandbox,
  containerName: string,
): Promise<readonly RuntimeContainer[]> {
  const containers = await runtime.listContainers(sandbox.id);
  return containers.filter((container) => nameOf(container) === containerName).toSorted(byAttempt);
}

/** The running container with this name. If there is none, throws a 500 refusal in the kubelet's words. */
export async function findRunningContainer(
  runtime: CriRuntime,
  sandbox: PodSandbox,
  containerName: string,
): Promise<RuntimeContainer> {
  const [best] = await listAttempts(runtime, sandbox, containerName);
  if (best?.state !== CONTAINER_STATE.running) {
    throw containerNotFound(containerName);
  }
  return best;
}

/** The kubelet's error for a container that does not run, and for one in a pod with another uid. */
export function containerNotFound(containerName: string): StatusError {
  return WIRE_ERRORS["container-unknown"].kubelet({ container: JSON.stringify(containerName) });
}

export function uidOf({ labels, metadata }: PodSandbox): string {
  return labels[POD_LABELS.uid] ?? metadata.uid;
}

export function nameOf({ labels, metadata }: RuntimeContainer): string {
  return labels[POD_LABELS.container] ?? metadata.name;
}

export function bySandboxAge(left: PodSandbox, right: PodSandbox): number {
  const readiness = Number(right.state === SANDBOX_READY) - Number(left.state === SANDBOX_READY);
  return readiness || right.createdAt - left.createdAt;
}

export function byAttempt(left: RuntimeContainer, right: RuntimeContainer): number {
  const running = Number(isRunning(right)) - Number(isRunning(left));
  return running || right.metadata.attempt - left.metadata.attempt || right.createdAt - left.createdAt;
}

function isRunning({ state }: RuntimeContainer): boolean {
  return state === CONTAINER_STATE.running;
}
