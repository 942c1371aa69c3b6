import type { ApiObject } from "../api-object.ts";
import { printedSelector } from "../label-match.ts";
import type {
  ContainerStatus,
  KubernetesObject,
  Namespace,
  Node,
  ObjectOfKind,
  Pod,
  ServedObject,
} from "../objects.ts";
import { ageOf } from "./human-duration.ts";
import { networkingCells } from "./networking-columns.ts";

/** A Table column; `isWide` columns appear only with `-o wide`. */
export interface Column {
  readonly name: string;
  readonly description: string;
  readonly isWide?: boolean;
}

const name: Column = {
  name: "Name",
  description:
    "Name must be unique within a namespace. Is required when creating resources. Cannot be updated.",
};
const age: Column = { name: "Age", description: "Time since the object was created." };

const columnsOfKind: Readonly<Record<ServedObject["kind"], readonly Column[]>> = {
  Pod: [
    name,
    { name: "Ready", description: "The aggregate readiness state of this pod for accepting traffic." },
    { name: "Status", description: "The aggregate status of the containers in this pod." },
    { name: "Restarts", description: "The number of times the containers in this pod have been restarted." },
    age,
    { name: "IP", description: "Address of the pod, once it has one.", isWide: true },
    { name: "Node", description: "The node that the pod is assigned to.", isWide: true },
    { name: "Nominated Node", description: "The node that is being freed for the pod.", isWide: true },
    {
      name: "Readiness Gates",
      description: "Conditions that must be true besides the containers'.",
      isWide: true,
    },
  ],
  Node: [
    name,
    { name: "Status", description: "The status of the node" },
    { name: "Roles", description: "The roles of the node" },
    age,
    { name: "Version", description: "Kubelet Version reported by the node." },
    { name: "Internal-IP", description: "The first address of type InternalIP.", isWide: true },
    { name: "External-IP", description: "The first address of type ExternalIP.", isWide: true },
    { name: "OS-Image", description: "Operating system reported by the node.", isWide: true },
    { name: "Kernel-Version", description: "Kernel version reported by the node.", isWide: true },
    {
      name: "Container-Runtime",
      description: "Container runtime version reported by the node.",
      isWide: true,
    },
  ],
  Namespace: [name, { name: "Status", description: "The status of the namespace" }, age],
  Service: [
    name,
    { name: "Type", description: "How the Service is reached." },
    { name: "Cluster-IP", description: "The first of its addresses within the cluster." },
    { name: "External-IP", description: "Where it is reached from outside." },
    { name: "Port(s)", description: "The ports, with those of the nodes." },
    age,
    { name: "Selector", description: "The labels of the pods behind it.", isWide: true },
  ],
  Deployment: [
    name,
    { name: "Ready", description: "Pods that are ready, of those that are wanted." },
    { name: "Up-to-date", description: "Pods of the newest template." },
    { name: "Available", description: "Pods that have been ready for long enough." },
    age,
    { name: "Containers", description: "Names of the containers of its template.", isWide: true },
    { name: "Images", description: "Images of the containers of its template.", isWide: true },
    { name: "Selector", description: "The labels of its pods.", isWide: true },
  ],
  Ingress: [
    name,
    { name: "Class", description: "The IngressClass that says who serves it." },
    { name: "Hosts", description: "Hosts of its rules." },
    { name: "Address", description: "Where it is exposed, once it is." },
    { name: "Ports", description: "Ports that it is served on; 443 where it names certificates." },
    age,
  ],
  IngressClass: [
    name,
    { name: "Controller", description: "Who serves the class." },
    { name: "Parameters", description: "The object with further settings." },
    age,
  ],
};

/** How a kind's objects become rows of a Table. */
export interface Printer {
  readonly columns: readonly Column[];
  /** One cell for each column. */
  cells(object: ApiObject, now: Date): readonly string[];
}

/** The printer of a kind that the cluster store holds, with kube-apiserver's columns. */
export function printerOf(kind: ServedObject["kind"]): Printer {
  return {
    columns: columnsOfKind[kind],
    cells: (object, now) => cellsOf(object as KubernetesObject, now),
  };
}

function cellsOf(object: KubernetesObject, now: Date): readonly string[] {
  switch (object.kind) {
    case "Pod":
      return podCells(object, now);
    case "Node":
      return nodeCells(object, now);
    case "Namespace":
      return namespaceCells(object, now);
    case "Deployment":
      return deploymentCells(object, now);
    case "Service":
    case "Ingress":
    case "IngressClass":
      return networkingCells(object, now);
    default:
      // RBAC objects are read but not served.
      return [object.metadata.name];
  }
}

function deploymentCells({ metadata, spec, status = {} }: ObjectOfKind<"Deployment">, now: Date): string[] {
  const { readyReplicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  const containers = spec.template.spec.containers ?? [];
  return [
    metadata.name,
    `${readyReplicas}/${spec.replicas ?? 1}`,
    String(updatedReplicas),
    String(availableReplicas),
    ageOf(metadata.creationTimestamp, now),
    containers.map((container) => container.name).join(","),
    containers.map(({ image = "" }) => image).join(","),
    printedSelector(spec.selector),
  ];
}

function podCells(pod: Pod, now: Date): string[] {
  const { metadata, spec, status = {} } = pod;
  const { ready, status: shown, restarts, lastRestart } = summarisePod(pod);
  const restartsText =
    restarts > 0 && lastRestart ? `${restarts} (${ageOf(lastRestart, now)} ago)` : String(restarts);
  return [
    metadata.name,
    ready,
    shown,
    restartsText,
    ageOf(metadata.creationTimestamp, now),
    orNone(status.podIP),
    orNone(spec.nodeName),
    orNone(status.nominatedNodeName),
    readinessGatesOf(pod),
  ];
}

function readinessGatesOf({ spec, status = {} }: Pod): string {
  const gates = Array.isArray(spec.readinessGates) ? spec.readinessGates : [];
  const isTrue = (gate: unknown) => {
    const { conditionType } = gate as { conditionType?: unknown };
    return (status.conditions ?? []).some(({ type, status }) => type === conditionType && status === "True");
  };
  return gates.length === 0 ? "<none>" : `${gates.filter(isTrue).length}/${gates.length}`;
}

function nodeCells(node: Node, now: Date): string[] {
  const { metadata, status = {} } = node;
  const { kubeletVersion, osImage, kernelVersion, containerRuntimeVersion } = status.nodeInfo ?? {};
  const addressOf = (wanted: string) => status.addresses?.find(({ type }) => type === wanted)?.address;
  return [
    metadata.name,
    nodeStatusOf(node),
    rolesOf(metadata.labels ?? {}),
    ageOf(metadata.creationTimestamp, now),
    kubeletVersion ?? "",
    orNone(addressOf("InternalIP")),
    orNone(addressOf("ExternalIP")),
    osImage || "<unknown>",
    kernelVersion || "<unknown>",
    containerRuntimeVersion || "<unknown>",
  ];
}

function nodeStatusOf({ spec, status = {} }: Node): string {
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  const health = ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady";
  return spec?.unschedulable ? `${health},SchedulingDisabled` : health;
}

function rolesOf(labels: Readonly<Record<string, string>>): string {
  const prefix = "node-role.kubernetes.io/";
  const roles = Object.entries(labels).flatMap(([key, value]) => {
    if (key.startsWith(prefix)) return key.length > prefix.length ? [key.slice(prefix.length)] : [];
    return key === "kubernetes.io/role" && value !== "" ? [value] : [];
  });
  return roles.length === 0 ? "<none>" : [...new Set(roles)].sort().join(",");
}

function namespaceCells({ metadata, status }: Namespace, now: Date): string[] {
  return [metadata.name, status?.phase ?? "", ageOf(metadata.creationTimestamp, now)];
}

function orNone(value: string | undefined): string {
  return value || "<none>";
}

/** The columns of `kubectl get pods`, computed as in kube-apiserver's printer. */
interface PodSummary {
  readonly ready: string;
  readonly status: string;
  readonly restarts: number;
  /** RFC 3339 time of the latest restart. */
  readonly lastRestart: string | undefined;
}

function summarisePod(pod: Pod): PodSummary {
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
