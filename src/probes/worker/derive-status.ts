import type { Condition, ContainerStatus, Pod, PodStatus } from "../../api/objects.ts";

/** The probes' verdicts about a container. */
interface ContainerVerdicts {
  isStarted(podUid: string, status: ContainerStatus): boolean;
  isReady(podUid: string, status: ContainerStatus): boolean;
}

/**
 * Derives `started` and `ready` of every container like the kubelet: a container that has not
 * started is not ready.
 */
export function withVerdicts(pod: Pod, verdicts: ContainerVerdicts): PodStatus {
  const { status = {}, spec } = pod;
  const uid = pod.metadata.uid ?? "";
  const judged = (container: ContainerStatus): ContainerStatus => {
    const started = verdicts.isStarted(uid, container);
    return { ...container, started, ready: started && verdicts.isReady(uid, container) };
  };
  const isSidecar = (name: string) =>
    spec.initContainers?.some((init) => init.name === name && init.restartPolicy === "Always") ?? false;
  const judgedInit = (container: ContainerStatus): ContainerStatus => {
    if (isSidecar(container.name)) return judged(container);
    const { running, terminated } = container.state ?? {};
    return { ...container, started: running !== undefined, ready: terminated?.exitCode === 0 };
  };
  return {
    ...status,
    ...(status.containerStatuses && { containerStatuses: status.containerStatuses.map(judged) }),
    ...(status.initContainerStatuses && {
      initContainerStatuses: status.initContainerStatuses.map(judgedInit),
    }),
  };
}

/**
 * Derives the pod conditions `ContainersReady` and `Ready` in the kubelet's words. Readiness gates
 * must be True as well. A condition whose status does not change keeps its time.
 */
export function withReadyConditions({ spec }: Pod, status: PodStatus, now: Date): PodStatus {
  const unready = spec.containers
    .map(({ name }) => name)
    .filter((name) => status.containerStatuses?.find((container) => container.name === name)?.ready !== true);
  const isRunning = status.phase === "Running";
  const containersReady = isRunning && unready.length === 0;
  const reason = isRunning
    ? { reason: "ContainersNotReady", message: `containers with unready status: [${unready.join(" ")}]` }
    : { reason: status.phase === "Succeeded" ? "PodCompleted" : "ContainersNotReady" };
  const before = status.conditions ?? [];
  const gates = readinessGatesOf(spec).filter(
    (type) => before.find((condition) => condition.type === type)?.status !== "True",
  );
  const gateReason = {
    reason: "ReadinessGatesNotReady",
    message: gates
      .map((gate) => `corresponding condition of pod readiness gate "${gate}" does not exist.`)
      .join(", "),
  };
  const isReady = containersReady && gates.length === 0;
  const conditions = [
    conditionOf("Ready", isReady, containersReady ? gateReason : reason),
    conditionOf("ContainersReady", containersReady, reason),
  ];
  return { ...status, conditions: conditions.reduce((all, next) => replaced(all, next, now), before) };
}

function conditionOf(type: string, isTrue: boolean, reason: object): Condition {
  return { type, status: isTrue ? "True" : "False", ...(isTrue ? {} : reason) };
}

function replaced(conditions: readonly Condition[], next: Condition, now: Date): readonly Condition[] {
  const old = conditions.find(({ type }) => type === next.type);
  const lastTransitionTime =
    old?.status === next.status && old.lastTransitionTime !== undefined
      ? old.lastTransitionTime
      : now.toISOString().replace(/\.\d+Z$/, "Z");
  const stamped = { ...next, lastTransitionTime };
  if (old === undefined) return [...conditions, stamped];
  return conditions.map((condition) => (condition === old ? stamped : condition));
}

function readinessGatesOf(spec: Pod["spec"]): readonly string[] {
  const gates = spec.readinessGates;
  if (!Array.isArray(gates)) return [];
  return gates.map((gate: { conditionType?: unknown }) => String(gate.conditionType));
}
