// src/kubernetes: the live API: kubeconfigs and credentials, list, watch, read-through, events

import type { ObjectKind, Pod, PodStatus } from "../api/objects.ts";
import { ClusterStore } from "../cluster/cluster-store.ts";
import { readManifestFiles } from "../cluster/manifest-files.ts";
import { type LastGoodManifests, ManifestSource } from "../cluster/manifest-source.ts";
import { parseManifests } from "../cluster/manifests.ts";
import type { LiveApi } from "../config/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { type FeatureGates, isFeatureGateName } from "../config/feature-gates.ts";
import { HttpUpstream } from "../http/http-upstream.ts";
import { connectThroughProxy, proxyServerOf } from "../http/proxy-connection.ts";
import { addressOfUrl } from "../net/endpoint-of-url.ts";
import { UpstreamTls } from "../net/tls.ts";
import type { Component, Health } from "../observability/component.ts";
import { reportFault } from "../observability/faults.ts";
import type { Logger } from "../observability/logger.ts";
import { Metrics } from "../observability/metrics.ts";
import type { GatewayContext } from "../sessions/context.ts";
import { ApiClient } from "./api-client.ts";
import type { ApiServerUpstream } from "./api-server-upstream.ts";
import { EventRecorder } from "./event-recorder.ts";
import { FeaturePublisher } from "./feature-publisher.ts";
import { type Kubeconfig, loadInCluster, loadKubeconfig } from "./kubeconfig.ts";
import { LiveCluster } from "./live-cluster.ts";
import { PermissionCheck } from "./permission-check.ts";
import { publishPodStatus } from "./publish-pod-status.ts";
import { requiredRules } from "./required-rules.ts";

const STREAMING_KINDS: readonly ObjectKind[] = ["Pod", "Node", "Namespace"];
const RBAC_KINDS: readonly ObjectKind[] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
const PEER_KINDS: readonly ObjectKind[] = ["EndpointSlice"];
const INGRESS_KINDS: readonly ObjectKind[] = ["Service", "EndpointSlice", "Ingress", "IngressClass"];

export interface BuiltCluster extends Component {
  readonly store: ClusterStore;
  readonly lookUp: GatewayContext["lookUp"];
  /** Where the live API is: no node may be there. */
  readonly apiEndpoint: { readonly host: string; readonly port: number } | undefined;
  /** The live API as the server for all other requests; undefined if manifests hold the cluster state. */
  readonly apiServer: ApiServerUpstream | undefined;
  /** Where what is written belongs; undefined where that is the store. */
  readonly live:
    | {
        readonly client: ApiClient;
        /** Of the kubeconfig's context, or of the pod. */
        readonly namespace: string;
        /** Resolves when every kind was listed once. */
        readonly known: Promise<void>;
      }
    | undefined;
  /** Writes the status of a pod that is probed here to the live API; undefined where there is none. */
  readonly publishPodStatus: ((pod: Pod, status: PodStatus) => Promise<void>) | undefined;
  /** Writes Events to the live API; undefined where there is none. */
  readonly events: Pick<EventRecorder, "record"> | undefined;
}

/** Cluster state from manifests or a live API. Throws ConfigurationError for invalid files. */
export async function buildCluster(
  configuration: GatewayConfiguration,
  metrics: Metrics,
  logger: Logger,
  lastGood?: LastGoodManifests | undefined,
): Promise<BuiltCluster> {
  // Versions go on from where an earlier process can at most have been, so that a watch across a restart lists again.
  const store = new ClusterStore({
    firstResourceVersion: Date.now(),
    onListenerError: (error, { object: { kind, metadata } }) => {
      const { namespace, name } = metadata;
      const change = `${kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
      reportFault("cluster", new Error(`the change of ${change} could not be followed`, { cause: error }));
    },
  });
  const { live, manifests: paths } = configuration.cluster;
  if (live !== undefined) return buildLive(live, configuration, store, metrics, logger);
  const gates = configuration.featureGates;
  const manifests = await ManifestSource.start({ paths, store, gates, logger, lastGood });
  return {
    store,
    lookUp: undefined,
    apiEndpoint: undefined,
    apiServer: undefined,
    live: undefined,
    publishPodStatus: undefined,
    events: undefined,
    reload: () => manifests.reload(),
    stop: () => manifests.stop(),
  };
}

/**
 * A snapshot of the cluster state: all manifests, or the requested objects of a live API. Throws ConfigurationError for files that are
 * wrong, StatusError when the API cannot be asked.
 */
export async function snapshotCluster(
  configuration: GatewayConfiguration,
  ask: (live: Pick<LiveCluster, "lookUp" | "lookUpNode">) => Promise<void> | undefined,
): Promise<ClusterStore> {
  const store = new ClusterStore();
  const { live: settings, manifests } = configuration.cluster;
  if (settings === undefined) {
    store.replaceAll(
      parseManifests(await readManifestFiles(manifests), configuration.featureGates),
      new Date(),
    );
    return store;
  }
  const { kubeconfig: file, context } = settings;
  const kubeconfig = file === undefined ? await loadInCluster() : await loadKubeconfig(file, context);
  const connect = connectorOf(kubeconfig);
  const client = new ApiClient({ kubeconfig, dialTimeoutMs: configuration.timeouts.dialMs, connect });
  const metrics = new Metrics({ withProcessMetrics: false }).cluster;
  const logger = { info: () => {}, warn: () => {} };
  try {
    await ask(new LiveCluster({ client, store, kinds: [], metrics, logger }));
    return store;
  } finally {
    client.close();
  }
}

async function buildLive(
  settings: LiveApi,
  configuration: GatewayConfiguration,
  store: ClusterStore,
  metrics: Metrics,
  logger: Logger,
): Promise<BuiltCluster> {
  const { kubeconfig: file, context, publishDeclaredFeatures } = settings;
  const kubeconfig = file === undefined ? await loadInCluster() : await loadKubeconfig(file, context);
  const connect = connectorOf(kubeconfig);
  const dialTimeoutMs = configuration.timeouts.dialMs;
  const client = new ApiClient({ kubeconfig, dialTimeoutMs, connect });
  const live = new LiveCluster({
    client,
    store,
    kinds: kindsFor(configuration),
    metrics: metrics.cluster,
    logger,
  });
  live.start();
  const permissions = new PermissionCheck({ client, rules: requiredRules(configuration), logger });
  const publisher =
    publishDeclaredFeatures &&
    new FeaturePublisher({
      client,
      cluster: store,
      nodes: publishDeclaredFeatures.nodes,
      features: publishDeclaredFeatures.features.filter((name) =>
        isPublished(name, configuration.featureGates),
      ),
      metrics: metrics.cluster,
      logger,
    });
  const apiServer = configuration.upstreamAPIServer
    ? undefined
    : forwardingTo(kubeconfig, client, settings, dialTimeoutMs);
  return {
    store,
    lookUp: (namespace, pod) => live.lookUp(namespace, pod),
    apiEndpoint: addressOfUrl(kubeconfig.server),
    apiServer,
    live: { client, namespace: kubeconfig.namespace, known: live.known },
    publishPodStatus: (pod, status) => publishPodStatus(client, pod, status),
    events: new EventRecorder({
      client,
      onFailure: (error) => logger.warn({ error }, "an Event could not be written"),
    }),
    health: () => healthOf(live, permissions),
    // Nodes no longer have the features that this gateway gave them.
    drain: async () => await publisher?.withdraw(),
    stop: async () => {
      permissions.stop();
      publisher?.stop();
      await live.stop();
      apiServer?.close();
      client.close();
    },
  };
}

/** A gate of the feature's name that is off here means that no Sluice of this configuration has it. */
function isPublished(feature: string, gates: FeatureGates): boolean {
  const isOff = isFeatureGateName(feature) && !gates.isEnabled(feature);
  return gates.isEnabled("NodeDeclaredFeatures") && !isOff;
}

/** Kinds without a reader are not watched. */
function kindsFor({ authorization, listeners }: GatewayConfiguration): ObjectKind[] {
  const usesRbac =
    authorization.modes.includes("RBAC") || listeners.kubelet?.authorization?.modes.includes("RBAC") === true;
  return [
    ...STREAMING_KINDS,
    ...(usesRbac ? RBAC_KINDS : []),
    ...(listeners.ingress === undefined ? [] : INGRESS_KINDS),
    ...(listeners.ingress === undefined && listeners.peers?.service !== undefined ? PEER_KINDS : []),
  ];
}

/** Old state serves: a gateway that stood aside while the API is away would take all replicas with it. */
function healthOf(live: LiveCluster, { missing }: PermissionCheck): Health {
  const lacking = missing.length > 0 ? [`lacks permissions: ${missing.join("; ")}`] : [];
  if (live.unsynced.length > 0) return [`not yet listed: ${live.unsynced.join(", ")}`, ...lacking].join("; ");
  const staleSeconds = Math.floor(live.staleMs / 1_000);
  const stale = staleSeconds > 0 ? [`the API server was last heard ${staleSeconds}s ago`] : [];
  const notes = [...stale, ...lacking];
  return notes.length > 0 ? { note: notes.join("; ") } : undefined;
}

function forwardingTo(
  kubeconfig: Kubeconfig,
  client: ApiClient,
  { forwardAs, impersonation, nameRequester }: LiveApi,
  dialTimeoutMs: number,
): ApiServerUpstream & { close(): void } {
  const pathPrefix = new URL(kubeconfig.server).pathname.replace(/\/+$/, "");
  if (forwardAs === "impersonate") {
    return {
      get upstream() {
        return client.upstream;
      },
      pathPrefix,
      impersonates: true,
      isConstrained: impersonation === "constrained",
      namesRequester: nameRequester,
      ownCredentials: kubeconfig,
      close: () => {},
    };
  }
  // With our certificate on the connection the API server would take every caller for us.
  const { isTls, ...address } = addressOfUrl(kubeconfig.server);
  const { ca, serverName, insecureSkipVerify } = kubeconfig.tls;
  const tls = isTls ? new UpstreamTls({ ca, serverName, insecureSkipVerify }) : undefined;
  const upstream = new HttpUpstream({
    endpoint: { ...address, tls },
    dialTimeoutMs,
    connect: connectorOf(kubeconfig),
  });
  return { upstream, pathPrefix, impersonates: false, close: () => upstream.close() };
}

function connectorOf({
  proxyUrl,
  tls,
}: Kubeconfig): ConstructorParameters<typeof HttpUpstream>[0]["connect"] {
  if (proxyUrl === undefined) return undefined;
  const proxy = proxyServerOf(new URL(proxyUrl), tls.ca?.toString(), tls.insecureSkipVerify);
  return (endpoint, options) => connectThroughProxy(proxy, endpoint, options);
}
