// src/kubernetes: the live API: list, watch, read-through, events

import { loadInCluster, loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { addressOfUrl } from "@sluice/client/internal/net/dial";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { ObjectKind, Pod, PodStatus } from "../api/objects.ts";
import { RBAC_KINDS } from "../cluster/cluster.ts";
import { ClusterStore } from "../cluster/cluster-store.ts";
import { readManifestFiles } from "../cluster/manifest-files.ts";
import { type LastGoodManifests, ManifestSource } from "../cluster/manifest-source.ts";
import { parseManifests } from "../cluster/manifests.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { type FeatureGates, isFeatureGateName } from "../config/feature-gates.ts";
import type { LiveApi } from "../config/sections/cluster.ts";
import { servesApi } from "../config/sections/listeners.ts";
import { type Component, type Health, Started } from "../lifecycle/component.ts";
import type { Logger } from "../observability/logger.ts";
import { Metrics } from "../observability/metrics.ts";
import type { ClusterContext } from "../sessions/context.ts";
import { type AdmissionVerdict, type ConnectSession, judgeOnce } from "./admission-verdict.ts";
import { ApiClient } from "./api-client.ts";
import { ApiServerEndpoints, reservesApiServers } from "./api-server-endpoints.ts";
import { type ApiServerUpstream, connectorOf, forwardingTo } from "./api-server-upstream.ts";
import { ConnectAdmission } from "./connect-admission.ts";
import { EventRecorder } from "./event-recorder.ts";
import { FeaturePublisher } from "./feature-publisher.ts";
import { LiveCluster, type LiveClusterOptions } from "./live-cluster.ts";
import { PermissionCheck } from "./permission-check.ts";
import { publishPodStatus } from "./publish-pod-status.ts";
import { requiredRules, watchedSessionKinds } from "./required-rules.ts";

const INGRESS_KINDS: readonly ObjectKind[] = ["Service", "EndpointSlice", "Ingress", "IngressClass"];

export interface BuiltCluster extends Component {
  readonly store: ClusterStore;
  readonly lookUp: ClusterContext["lookUp"];
  /** Current addresses of the live API (kubeconfig and endpoints); no node may have one. */
  listApiEndpoints(): readonly { readonly host: string; readonly port: number }[];
  /** The server that other requests go to; undefined if the cluster state comes from manifests. */
  readonly apiServer: ApiServerUpstream | undefined;
  /**
   * Whether admission in the live API may judge a session; undefined if the gateway does not check.
   */
  readonly judgeConnect: ConnectAdmission["judge"] | undefined;
  /** Receives the writes of objects; undefined if they go to the store. */
  readonly live:
    | {
        readonly client: ApiClient;
        /** The kubeconfig context's namespace, or the pod's. */
        readonly namespace: string;
        /** Resolves after every kind has been listed once. */
        readonly known: Promise<void>;
      }
    | undefined;
  /** Writes a probed pod's status to the live API; undefined without one. */
  readonly publishPodStatus: ((pod: Pod, status: PodStatus) => Promise<void>) | undefined;
  /** Writes Events to the live API; undefined without one. */
  readonly events: Pick<EventRecorder, "record"> | undefined;
}

/** Builds the cluster state from manifests or a live API. Throws ConfigurationError. */
export async function buildCluster(
  configuration: GatewayConfiguration,
  metrics: Metrics,
  logger: Logger,
  lastGood?: LastGoodManifests | undefined,
): Promise<BuiltCluster> {
  const { live: settings, manifests: paths } = configuration.cluster;
  let live: LiveCluster | undefined;
  const freshnessOf: ClusterStore["freshnessOf"] = (kinds) =>
    live?.freshnessOf(kinds) ?? { asOf: new Date(), problem: undefined };
  const store = new ClusterStore({
    // No earlier process can have reached this version, so a watch across a restart lists again.
    firstResourceVersion: Date.now(),
    freshnessOf: settings && freshnessOf,
    onListenerError: (error, { object: { kind, metadata } }) => {
      const { namespace, name } = metadata;
      const change = `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
      reportFault("cluster", new Error(`the change of ${change} could not be followed`, { cause: error }));
    },
  });
  if (settings !== undefined) {
    const follow = (cluster: LiveCluster) => {
      live = cluster;
    };
    return await Started.building((it) =>
      buildLive(it, { settings, configuration, store, follow, metrics: metrics.cluster, logger }),
    );
  }
  const gates = configuration.featureGates;
  const manifests = await ManifestSource.start({ paths, store, gates, logger, lastGood });
  return {
    store,
    lookUp: undefined,
    listApiEndpoints: () => [],
    apiServer: undefined,
    judgeConnect: undefined,
    live: undefined,
    publishPodStatus: undefined,
    events: undefined,
    reload: () => manifests.reload(),
    stop: () => manifests.stop(),
  };
}

/** The cluster state that a command reads. */
export interface ClusterSnapshot {
  readonly store: ClusterStore;
  /** Judges as `BuiltCluster.judgeConnect` does, by rules that it reads now. */
  judgeConnect(session: ConnectSession): Promise<AdmissionVerdict | undefined>;
}

/**
 * Reads all manifests, or the requested objects of a live API. Throws ConfigurationError for
 * invalid files, StatusError if the API cannot be read.
 */
export async function snapshotCluster<T>(
  configuration: GatewayConfiguration,
  ask: (live: Pick<LiveCluster, "lookUp" | "lookUpNode">) => Promise<void> | undefined,
  look: (cluster: ClusterSnapshot) => T | Promise<T>,
): Promise<T> {
  const store = new ClusterStore();
  const { live: settings, manifests } = configuration.cluster;
  if (settings === undefined) {
    store.replaceAll(
      parseManifests(await readManifestFiles(manifests), configuration.featureGates),
      new Date(),
    );
    return await look({ store, judgeConnect: async () => undefined });
  }
  const { kubeconfig: file, context } = settings;
  const kubeconfig = file === undefined ? await loadInCluster() : await loadKubeconfig(file, context);
  const connect = connectorOf(kubeconfig);
  const client = new ApiClient({ kubeconfig, dialTimeoutMs: configuration.timeouts.dialMs, connect });
  const metrics = new Metrics({ withProcessMetrics: false }).cluster;
  try {
    const logger = { info: () => {}, warn: () => {} };
    const live = new LiveCluster({ client, store, kinds: [], maxStateAgeMs: 0, metrics, logger });
    await ask(live);
    return await look({
      store,
      judgeConnect: async (session) => {
        if (settings.admission !== "apiServer") return settings.admission === "always" ? ALWAYS : undefined;
        await live.lookUpNamespace(session.namespace);
        return await judgeOnce(client, store, session).catch((error: Error) => ({
          reason: "admission-unknown",
          by: error.message,
        }));
      },
    });
  } finally {
    client.close();
  }
}

interface LiveParts {
  readonly settings: LiveApi;
  readonly configuration: GatewayConfiguration;
  readonly store: ClusterStore;
  /** Called with the cluster before it lists anything. */
  readonly follow: (live: LiveCluster) => void;
  readonly metrics: Metrics["cluster"];
  readonly logger: Logger;
}

async function buildLive(started: Started, parts: LiveParts): Promise<BuiltCluster> {
  const { settings, configuration, store, follow, metrics, logger } = parts;
  const { kubeconfig: file, context } = settings;
  const kubeconfig = file === undefined ? await loadInCluster() : await loadKubeconfig(file, context);
  const connect = connectorOf(kubeconfig);
  const dialTimeoutMs = configuration.timeouts.dialMs;
  const client: ApiClient = started.add(
    new ApiClient({
      kubeconfig,
      dialTimeoutMs,
      connect,
      onForbidden: () => permissions.doubt(),
    }),
    (it) => it.close(),
  );
  const live = started.add(
    new LiveCluster({
      client,
      store,
      ...kindsFor(configuration),
      maxStateAgeMs: settings.maxStateAgeMs,
      metrics,
      logger,
    }),
    (it) => it.stop(),
  );
  follow(live);
  const permissions = started.add(
    new PermissionCheck({ client, rules: requiredRules(configuration), logger }),
    (it) => it.stop(),
  );
  live.start();
  const configured = addressOfUrl(kubeconfig.server);
  const apiServers = reservesApiServers(configuration)
    ? started.add(new ApiServerEndpoints({ client, metrics, logger }), (it) => it.stop())
    : undefined;
  const admission = admissionOf(started, client, parts);
  const publisher = publisherOf(started, client, parts);
  const apiServer = configuration.upstreamAPIServer
    ? undefined
    : started.add(forwardingTo(kubeconfig, client, settings, dialTimeoutMs), (it) => it.close());
  return {
    store,
    lookUp: (namespace, pod) => live.lookUp(namespace, pod),
    listApiEndpoints: () => [configured, ...(apiServers?.list() ?? [])],
    apiServer,
    judgeConnect: settings.admission === "always" ? () => ALWAYS : admission?.judge.bind(admission),
    live: { client, namespace: kubeconfig.namespace, known: live.known },
    publishPodStatus: (pod, status) => publishPodStatus(client, pod, status),
    events: new EventRecorder({
      client,
      onFailure: (error) => logger.warn({ error }, "an Event could not be written"),
    }),
    health: () => healthOf(live, permissions, admission),
    // Removes the features that this gateway published on nodes.
    drain: async () => await publisher?.withdraw(),
    stop: () => started.stop(),
  };
}

/**
 * Watches the webhooks and policies that may judge a session; undefined if the gateway does not
 * check.
 */
function admissionOf(
  started: Started,
  client: ApiClient,
  { settings, configuration, store, metrics, logger }: LiveParts,
): ConnectAdmission | undefined {
  if (settings.admission !== "apiServer" || !servesApi(configuration.listeners)) return undefined;
  const { maxStateAgeMs } = settings;
  const admission = new ConnectAdmission({ client, cluster: store, maxStateAgeMs, metrics, logger });
  return started.add(admission, (it) => it.stop());
}

/** Publishes features on nodes, if the configuration names any. */
function publisherOf(
  started: Started,
  client: ApiClient,
  { settings: { publishDeclaredFeatures }, configuration, store, metrics, logger }: LiveParts,
): FeaturePublisher | undefined {
  if (!publishDeclaredFeatures) return undefined;
  const { nodes } = publishDeclaredFeatures;
  const features = publishDeclaredFeatures.features.filter((name) =>
    isPublished(name, configuration.featureGates),
  );
  const publisher = new FeaturePublisher({ client, cluster: store, nodes, features, metrics, logger });
  return started.add(publisher, (it) => it.stop());
}

/** If the gate with the feature's name is off, no gateway with this configuration has it. */
function isPublished(feature: string, gates: FeatureGates): boolean {
  const isOff = isFeatureGateName(feature) && !gates.isEnabled(feature);
  return gates.isEnabled("NodeDeclaredFeatures") && !isOff;
}

/** Watches only kinds that the gateway reads. */
function kindsFor(configuration: GatewayConfiguration): Pick<LiveClusterOptions, "kinds" | "namespaces"> {
  const { authorization, listeners } = configuration;
  const usesRbac =
    authorization.modes.includes("RBAC") || listeners.kubelet?.authorization?.modes.includes("RBAC") === true;
  const kinds: readonly ObjectKind[] = [
    ...watchedSessionKinds(configuration),
    ...(usesRbac ? RBAC_KINDS : []),
  ];
  if (listeners.ingress !== undefined) return { kinds: [...kinds, ...INGRESS_KINDS] };
  const service = listeners.peers?.service;
  if (service === undefined) return { kinds };
  return { kinds: [...kinds, "EndpointSlice"], namespaces: { EndpointSlice: service.namespace } };
}

/** Stale state is healthy: otherwise an API outage would take all replicas out of service. */
function healthOf(
  live: LiveCluster,
  { missing }: PermissionCheck,
  admission: ConnectAdmission | undefined,
): Health {
  const lacking = missing.length > 0 ? [`lacks permissions: ${missing.join("; ")}`] : [];
  const unsynced = [...live.unsynced, ...(admission?.unsynced ?? [])];
  if (unsynced.length > 0) return [`not yet listed: ${unsynced.join(", ")}`, ...lacking].join("; ");
  const staleSeconds = Math.floor(live.staleMs / 1_000);
  const stale = staleSeconds > 0 ? [`the API server was last heard ${staleSeconds}s ago`] : [];
  const unknown = admission?.problem;
  const carried = unknown === undefined ? [] : [`the API server carries every session: ${unknown}`];
  const notes = [...stale, ...carried, ...lacking];
  return notes.length > 0 ? { note: notes.join("; ") } : undefined;
}

const ALWAYS: AdmissionVerdict = { reason: "admission-always", by: "cluster.admission: always" };
