import type { ContainerStatus, Pod } from "../objects.ts";

/** The columns of `kubectl get pods`, computed as in kube-apiserver's printer. */
interface PodSummary {
  readonly ready: string;
  readonly status: string;
  readonly restarts: number;
  /** RFC 3339 time of the latest restart. */
  readonly lastRestart: string | undefined;
}

export function summarisePod(pod: Pod): PodSummary {
  const { status = {}, spec, metadata } = pod;
  const { conditions = [], initContainerStatuses = [], containerStatuses = [] } = status;
  const initialising = initReason(initContainerStatuses, spec.initContainers?.length ?? 0);
  const isInitialised = conditions.some(({ type, status }) => type === "Initialized" && status === "True");
  const showsContainers = initialising === undefined || isInitialised;
  const counted = showsContainers ? containerStatuses : initContainerStatuses;
  const running = containerStatuses.filter(({ ready, state }) => ready && state?.running);

  let reason = status.reason || status.phase || "";
  if (conditions.some(({ type, reason }) => type === "PodScheduled" && reason === "SchedulingGated")) {
    reason = "SchedulingGated";
  }
  reason = initialising ?? reason;
  if (showsContainers) reason = containerReason(pod, reason, running.length > 0);
  const isOver = status.phase === "Succeeded" || status.phase === "Failed";
  if (metadata.deletionTimestamp !== undefined) {
    if (status.reason === "NodeLost") reason = "Unknown";
    else if (!isOver) reason = "Terminating";
  }
  return {
    ready: `${showsContainers ? running.length : 0}/${spec.containers.length}`,
    status: reason,
    restarts: counted.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    lastRestart: counted.flatMap(lastFinish).sort().at(-1),
  };
}

/** `Init:...` for the first init container that has not succeeded; undefined if all have. */
function initReason(statuses: readonly ContainerStatus[], total: number): string | undefined {
  const index = statuses.findIndex(({ state }) => state?.terminated?.exitCode !== 0);
  const state = statuses[index]?.state;
  if (index < 0) return undefined;
  if (state?.terminated) return `Init:${terminationReason(state.terminated)}`;
  const waiting = state?.waiting?.reason;
  return waiting && waiting !== "PodInitializing" ? `Init:${waiting}` : `Init:${index}/${total}`;
}

/** The first container with a reason wins; kubectl's printer reads them from last to first. */
function containerReason({ status = {} }: Pod, podReason: string, hasRunning: boolean): string {
  const reasons = (status.containerStatuses ?? []).flatMap(({ state }) => {
    if (state?.waiting?.reason) return [state.waiting.reason];
    return state?.terminated ? [terminationReason(state.terminated)] : [];
  });
  const reason = reasons[0] ?? podReason;
  if (reason !== "Completed" || !hasRunning) return reason;
  const isReady = (status.conditions ?? []).some(({ type, status }) => type === "Ready" && status === "True");
  return isReady ? "Running" : "NotReady";
}

function terminationReason({
  reason,
  signal,
  exitCode,
}: {
  reason?: string;
  signal?: number;
  exitCode?: number;
}) {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode ?? 0}`;
}

function lastFinish({ lastState }: ContainerStatus): string[] {
  const finishedAt = (lastState as { terminated?: { finishedAt?: unknown } } | undefined)?.terminated
    ?.finishedAt;
  return typeof finishedAt === "string" ? [finishedAt] : [];
}
