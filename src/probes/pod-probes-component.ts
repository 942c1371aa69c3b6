import { CLAIMED_KUBERNETES_MINOR } from "@sluice/client/internal/config/version";
import { type Endpoint, type EndpointSlice, SERVICE_NAME_LABEL } from "../api/networking-objects.ts";
import type { Pod, PodStatus } from "../api/objects.ts";
import type { ClusterStore } from "../cluster/cluster-store.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { CriRuntime } from "../cri/cri-runtime.ts";
import { PodStatuses } from "../cri/pod-statuses.ts";
import type { EventRecorder } from "../kubernetes/event-recorder.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { commandsIn, endContainer } from "./container-runtime.ts";
import { PodProbes } from "./pods/pod-probes.ts";
import type { RunProbe } from "./run-probe.ts";
import type { ProbeState } from "./worker/probe-results.ts";
import type { TimerWheel } from "./worker/timer-wheel.ts";

/** The node whose containers are probed. */
interface ProbedNode {
  readonly nodeName: string;
  readonly runtime: CriRuntime;
}

export interface PodProbeParts {
  /**
   * Probes its pods if `podProbes` names this node. The runtime reports its containers, runs exec
   * probes and restarts them.
   */
  readonly node?: ProbedNode | undefined;
  readonly store: ClusterStore;
  /**
   * Writes to a live cluster, whose controllers update the endpoints; absent: the store is the only
   * state.
   */
  readonly publishStatus?: ((pod: Pod, status: PodStatus) => Promise<void>) | undefined;
  /** Receives Events about containers in full; absent: only the log gets them, summarized. */
  readonly events?: Pick<EventRecorder, "record"> | undefined;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /**
   * Another process probed before. Its results, in the pods' statuses, count until there are new
   * ones.
   */
  readonly isSuccessor?: boolean;
}

export interface BuiltPodProbes {
  /** For `/debug/probes`. */
  list(): readonly ProbeState[];
  stop(): void | Promise<void>;
}

/** Probes the containers of pods on the nodes that `podProbes` names. */
export function probePods(
  { podProbes, featureGates }: GatewayConfiguration,
  { store, metrics, logger, node, publishStatus, events, isSuccessor }: PodProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): BuiltPodProbes {
  const ours = new Set(podProbes.nodeNames);
  const runtime = node !== undefined && ours.has(node.nodeName) ? node.runtime : undefined;
  const pods = new PodProbes({
    pods: store,
    isOurs: ({ spec }) => ours.has(spec.nodeName ?? ""),
    publish: publishStatus ?? ((pod, status) => publishToStore(store, pod, status)),
    restart: runtime && ((request) => endContainer(runtime, request)),
    runCommand: runtime && ((containerId) => commandsIn(runtime, containerId)),
    wheel,
    runProbe,
    gates: {
      H2CContainerProbe: featureGates.isEnabled("H2CContainerProbe"),
      GRPCContainerProbeTLS: featureGates.isEnabled("GRPCContainerProbeTLS"),
    },
    userAgentVersion: CLAIMED_KUBERNETES_MINOR,
    series: (labels) => metrics.probes.series(labels),
    // The full text quotes bodies and outputs, which must not reach a log.
    onEvent: (pod, container, event) => {
      const { namespace, name } = pod.metadata;
      const { reason, cause, summary } = event;
      logger.warn({ namespace, pod: name, container, reason, cause }, summary);
      void events?.record(pod, container, event);
    },
    onProblem: (what, error) => logger.error({ error }, what),
  });
  const statuses =
    runtime &&
    new PodStatuses({
      runtime,
      onStatus: ({ namespace, name, status }) => {
        const uid = store.getPod(namespace, name)?.metadata.uid;
        if (uid !== undefined) pods.reportStatus(uid, status);
      },
      onProblem: (error) => logger.error({ error }, "the runtime could not list its containers"),
    });
  pods.start(isSuccessor);
  statuses?.start();
  return {
    list: () => pods.list(),
    stop: () => {
      statuses?.stop();
      pods.stop();
    },
  };
}

/**
 * Writes the pod's conditions, and its addresses' conditions in EndpointSlices. They decide which
 * pods get traffic.
 */
export function publishToStore(store: ClusterStore, pod: Pod, status: PodStatus): void {
  const { resourceVersion: _, ...metadata } = pod.metadata;
  const { namespace = "" } = metadata;
  store.upsert({ ...pod, metadata, status });
  const isReady = status.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  for (const slice of store.list("EndpointSlice", namespace)) {
    const service = store.get("Service", namespace, slice.metadata.labels?.[SERVICE_NAME_LABEL] ?? "");
    const publishesNotReady = service?.spec?.publishNotReadyAddresses === true;
    const judged = withPodReadiness(slice, { ...pod, status }, isReady, publishesNotReady);
    if (judged === slice) continue;
    const { resourceVersion: __, ...sliceMetadata } = judged.metadata;
    store.upsert({ ...judged, metadata: sliceMetadata });
  }
}

/**
 * Puts the pod's readiness into the slice like the endpoint slice controller; returns the same
 * object if nothing changes. With publishNotReadyAddresses every pod counts as ready.
 */
function withPodReadiness(
  slice: EndpointSlice,
  pod: Pod,
  isReady: boolean,
  publishesNotReady: boolean,
): EndpointSlice {
  let isChanged = false;
  const terminating = pod.metadata.deletionTimestamp !== undefined;
  const conditions = {
    ready: publishesNotReady || (isReady && !terminating),
    serving: isReady,
    terminating,
  };
  const endpoints = (slice.endpoints ?? []).map((endpoint) => {
    if (!isOf(endpoint, pod)) return endpoint;
    const old = endpoint.conditions ?? {};
    const isSame =
      old.ready === conditions.ready &&
      old.serving === conditions.serving &&
      (old.terminating ?? false) === conditions.terminating;
    if (isSame) return endpoint;
    isChanged = true;
    return { ...endpoint, conditions };
  });
  return isChanged ? { ...slice, endpoints } : slice;
}

function isOf({ targetRef, addresses }: Endpoint, { metadata, status }: Pod): boolean {
  if (targetRef?.name !== undefined) return targetRef.kind === "Pod" && targetRef.name === metadata.name;
  return status?.podIP !== undefined && addresses.includes(status.podIP);
}
