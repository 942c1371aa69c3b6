import { availableParallelism } from "node:os";
import type { Pod, PodStatus } from "./api/objects.ts";
import type { ProbeHandler } from "./api/probe-objects.ts";
import { SERVICE_NAME_LABEL } from "./api/service-objects.ts";
import type { ClusterStore } from "./cluster/cluster-store.ts";
import { nodeEndpointOf } from "./cluster/locate.ts";
import type { GatewayConfiguration } from "./config/configuration.ts";
import type { UpstreamProbe } from "./config/upstream-probes.ts";
import type { KubeletOptions } from "./gateway/context.ts";
import type { KnownNodes } from "./gateway/nodes/known-nodes.ts";
import type { EventRecorder } from "./kubernetes/event-recorder.ts";
import { commandsIn, endContainer } from "./node/container-probes.ts";
import type { CriRuntime } from "./node/cri-runtime.ts";
import { PodStatuses } from "./node/pod-statuses.ts";
import type { Logger } from "./observability/logger.ts";
import type { Metrics } from "./observability/metrics.ts";
import { withPodReadiness } from "./probes/pods/endpoint-readiness.ts";
import { PodProbes } from "./probes/pods/pod-probes.ts";
import { errored } from "./probes/probe-result.ts";
import type { RunProbe } from "./probes/run-probe.ts";
import { ProbeThreads } from "./probes/threads/probe-threads.ts";
import { UpstreamProbes, type UpstreamTarget } from "./probes/upstream/upstream-probes.ts";
import { TimerWheel } from "./probes/worker/timer-wheel.ts";
import { endpointOfUrl } from "./upstream/endpoint-of-url.ts";
import type { ProbeFinding } from "./workers/probe-findings.ts";

/** MAJOR.MINOR in `User-Agent: kube-probe/MAJOR.MINOR`. */
const USER_AGENT_VERSION = "1.36";

/** The node leg: where its containers are. */
export interface ProbedNode {
  readonly nodeName: string;
  readonly runtime: CriRuntime;
}

export interface ProbeParts {
  /** Its pods are probed when `podProbes` names it: containers by the runtime's word, exec and restarts by the runtime. */
  readonly node?: ProbedNode | undefined;
  readonly store: ClusterStore;
  /** Writes to a live cluster, whose controllers see to the endpoints; absent: the store is all there is. */
  readonly publishStatus?: ((pod: Pod, status: PodStatus) => Promise<void>) | undefined;
  /** Where Events about containers go, whole; absent: only the log has them, summed up. */
  readonly events?: Pick<EventRecorder, "record"> | undefined;
  readonly nodes: Pick<KnownNodes, "reportProbe">;
  readonly kubelet: KubeletOptions;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Another process has probed before: what it found of pods, as their statuses have it, counts until there are verdicts. */
  readonly isSuccessor?: boolean;
  /** What it found of nodes and gateways; absent: all are alive. */
  readonly wasHealthy?: ((kind: "node" | "gateway", name: string) => boolean) | undefined;
  /** Tells what is found of nodes and gateways to other processes. */
  readonly share?: ((findings: readonly ProbeFinding[]) => void) | undefined;
}

export interface BuiltProbes {
  /** Of a streaming gateway, by name. */
  isGatewayHealthy(name: string): boolean;
  stop(): void;
}

/** Everything that is probed: our nodes' pods, the nodes, the gateways. All share one timer. */
export async function buildProbes(
  configuration: GatewayConfiguration,
  parts: ProbeParts,
): Promise<BuiltProbes> {
  const wheel = new TimerWheel();
  const { threads } = configuration.podProbes;
  const probeThreads = new ProbeThreads({
    maxThreads: threads === "auto" ? availableParallelism() : threads,
    onProblem: (error) => parts.logger.error({ error }, "a thread that probes has ended"),
  });
  const runProbe: RunProbe = (...probe) => probeThreads.run(...probe);
  const { nodes, gateways } = configuration.upstreamProbes;
  const stops: (() => void)[] = [];
  if (configuration.podProbes.nodeNames.length > 0) {
    stops.push(probePods(configuration, parts, wheel, runProbe));
  }
  // Probes dial by themselves, and would judge a node by a way that is not the one of its sessions.
  if (nodes !== undefined && parts.kubelet.connect === undefined)
    stops.push(probeNodes(nodes, parts, wheel, runProbe));
  const gatewayProbes = gateways && (await probeGateways(gateways, configuration, parts, wheel, runProbe));
  return {
    isGatewayHealthy: (name) => gatewayProbes?.isHealthy(name) ?? true,
    stop: () => {
      gatewayProbes?.stop();
      for (const stop of stops) stop();
      probeThreads.stop();
    },
  };
}

function probePods(
  { podProbes, featureGates }: GatewayConfiguration,
  { store, metrics, logger, node, publishStatus, events, isSuccessor }: ProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): () => void {
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
    userAgentVersion: USER_AGENT_VERSION,
    series: (labels) => metrics.probes.series(labels),
    // The whole text quotes bodies and outputs, which no log may hold.
    onEvent: (pod, container, event) => {
      const { namespace, name } = pod.metadata;
      logger.warn({ namespace, pod: name, container, reason: event.reason }, event.summary);
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
      onProblem: (error) => logger.error({ error }, "the runtime could not be asked about its containers"),
    });
  pods.start(isSuccessor);
  statuses?.start();
  return () => {
    statuses?.stop();
    pods.stop();
  };
}

/** Conditions of the pod, and of its addresses in EndpointSlices: what decides who gets traffic. */
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

/** Every node of the cluster, as nodes come and go; verdicts go to the circuit breaker. */
function probeNodes(
  probe: UpstreamProbe,
  { store, nodes, kubelet, logger, wasHealthy, share }: ProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): () => void {
  const probes = new UpstreamProbes({
    timing: timingOf(probe),
    wheel,
    wasHealthy: wasHealthy && ((name) => wasHealthy("node", name)),
    report: (name, isHealthy, reason) => {
      nodes.reportProbe(name, isHealthy, reason);
      share?.([{ kind: "node", name, isHealthy, reason }]);
      logger.warn({ node: name, isHealthy, reason }, isHealthy ? "a node is back" : "a node is found dead");
    },
  });
  const refresh = (): void => {
    probes.setTargets(
      store.listNodes().map(
        (node): UpstreamTarget => ({
          name: node.metadata.name,
          attempt: async (timeoutMs, signal) => {
            try {
              const endpoint = await kubelet.endpointOf(nodeEndpointOf(node, kubelet));
              return await run(runProbe, probe, endpoint, timeoutMs, signal);
            } catch (error) {
              // A name or an address that is not to be dialled says nothing about the node.
              return errored(error instanceof Error ? error.message : String(error));
            }
          },
        }),
      ),
    );
  };
  const unsubscribe = store.subscribe(({ type, object }) => {
    if (object.kind !== "Node") return;
    refresh();
    // Nobody probes it any more, and nobody is to believe that it is dead when it comes again.
    if (type === "DELETED")
      share?.([{ kind: "node", name: object.metadata.name, isHealthy: true, reason: "" }]);
  });
  refresh();
  return () => {
    unsubscribe();
    probes.stop();
  };
}

async function probeGateways(
  probe: UpstreamProbe,
  { listeners }: GatewayConfiguration,
  { logger, wasHealthy, share }: ProbeParts,
  wheel: TimerWheel,
  runProbe: RunProbe,
): Promise<UpstreamProbes> {
  const targets: UpstreamTarget[] = [];
  for (const { name, upstream } of listeners.ingress?.streamingGateways ?? []) {
    if (upstream === undefined) continue;
    const endpoint = await endpointOfUrl(upstream.url, upstream);
    targets.push({ name, attempt: (timeoutMs, signal) => run(runProbe, probe, endpoint, timeoutMs, signal) });
  }
  const probes = new UpstreamProbes({
    timing: timingOf(probe),
    wheel,
    wasHealthy: wasHealthy && ((name) => wasHealthy("gateway", name)),
    report: (gateway, isHealthy, reason) => {
      share?.([{ kind: "gateway", name: gateway, isHealthy, reason }]);
      logger.warn(
        { gateway, isHealthy, reason },
        isHealthy ? "a gateway is back" : "a gateway is found dead",
      );
    },
  });
  probes.setTargets(targets);
  return probes;
}

function run(
  runProbe: RunProbe,
  probe: UpstreamProbe,
  { host, port }: { readonly host: string; readonly port: number },
  timeoutMs: number,
  signal: AbortSignal,
) {
  return runProbe(
    handlerOf(probe, port),
    { host, containerPorts: [] },
    {
      timeoutMs,
      signal,
      userAgentVersion: USER_AGENT_VERSION,
      // Whoever writes a configuration file asks for what it says.
      gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
    },
  );
}

function handlerOf({ handler }: UpstreamProbe, usualPort: number): ProbeHandler {
  const port = handler.port ?? usualPort;
  switch (handler.type) {
    case "tcpSocket":
      return { tcpSocket: { port } };
    case "grpc":
      return { grpc: { port, service: handler.service, mode: handler.mode } };
    case "httpGet": {
      const { path, scheme, protocol } = handler;
      return { httpGet: { port, path, scheme, protocol } };
    }
  }
}

function timingOf({ handler: _, ...timing }: UpstreamProbe) {
  return { initialDelaySeconds: 0, ...timing };
}
