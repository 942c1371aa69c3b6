import { buildAudit } from "../access/audit/component.ts";
import { buildAuthenticator } from "../access/authn/component.ts";
import { buildAuthorizer } from "../access/authz/component.ts";
import { createAdminServer } from "../admin/admin-server.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { CLAIMED_KUBERNETES_VERSION } from "../config/version.ts";
import { HttpUpstream } from "../http/http-upstream.ts";
import { type RunningIngress, startIngress } from "../ingress/component.ts";
import { buildCluster } from "../kubernetes/component.ts";
import { answerFromCluster } from "../legs/api-server/answer-from-cluster.ts";
import { createApiServer } from "../legs/api-server/api-server.ts";
import { forwardToApiServer } from "../legs/api-server/forward-to-api-server.ts";
import { buildKubelet } from "../legs/api-server/kubelets-component.ts";
import { buildKubeletListener } from "../legs/kubelet/component.ts";
import { refuseUpgrade } from "../listeners/answer.ts";
import { closerOf, closeServer } from "../listeners/close-server.ts";
import { EdgeRules } from "../listeners/edge-rules.ts";
import type { ServingContext } from "../listeners/listener-context.ts";
import { readServingTls, replaceTlsOf, watchServingTls } from "../listeners/serving-certificate.ts";
import { drainGateway } from "../listeners/shutdown.ts";
import { Bandwidth } from "../net/bandwidth.ts";
import { endpointOfUrl } from "../net/endpoint-of-url.ts";
import { SessionClock } from "../net/session-clock.ts";
import { buildKnownNodes, nodesForOperators } from "../nodes/component.ts";
import type { DescribedNode } from "../nodes/describe-nodes.ts";
import { createLogger, type Logger } from "../observability/logger.ts";
import { Metrics } from "../observability/metrics.ts";
import { type BuiltProbes, buildProbes, type ProbeParts } from "../probes/component.ts";
import { buildSharedProbes, type SharedProbes } from "../probes/shared-probes-component.ts";
import type { GatewayPolicy } from "../sessions/context.ts";
import { buildResumption, startHolderServer } from "../sessions/resumption/component.ts";
import { Sessions } from "../sessions/sessions.ts";
import { type ListenerUrls, type Runtime, singleProcess, urlOf, urlsByListener } from "./runtime/runtime.ts";
import { observeFaults } from "./uncaught-exceptions.ts";

export interface RunningGateway {
  /** Where the listeners are, with the ports that the system chose. */
  readonly apiServerUrl: string;
  readonly adminUrl: string;
  readonly ingress: Pick<RunningIngress, "httpUrl" | "httpsUrl"> | undefined;
  /** Absent where this is no node. */
  readonly kubeletUrl?: string | undefined;
  /** Every listener's URL, by name. */
  readonly listening: Readonly<Record<string, string | undefined>>;
  /** Readiness off, no new upgrades, sessions finish within the grace period or are ended with an honest status. */
  shutDown(): Promise<void>;
  sessions(): ReturnType<Sessions["list"]>;
  /** What it holds of every node, or of the one of that name. */
  nodes(name?: string): readonly DescribedNode[];
  /** Takes over what can change while it runs: policy, and what is in the files that the configuration names. */
  reload(configuration: GatewayConfiguration): Promise<void>;
  /** For those that share probes with other processes. */
  readonly probes: Pick<SharedProbes, "learn" | "begin" | "listProbes">;
  /** To be merged with those of other processes. */
  metrics(): Promise<readonly object[]>;
}

/** What stops the parts that have started, in the order of their start. */
type Stops = (() => unknown)[];

/**
 * The composition root: a configuration in, a running gateway out. Throws ConfigurationError for files it names wrongly; nothing runs
 * then, and no port is taken.
 */
export async function startGateway(
  configuration: GatewayConfiguration,
  logger: Logger = createLogger(configuration.logging),
  surroundings: Runtime = singleProcess,
): Promise<RunningGateway> {
  const stops: Stops = [];
  try {
    return await startParts(configuration, logger, surroundings, stops);
  } catch (error) {
    // A part goes before those that it was built on.
    for (const stop of stops.reverse()) await stop();
    throw error;
  }
}

async function startParts(
  configuration: GatewayConfiguration,
  logger: Logger,
  surroundings: Runtime,
  stops: Stops,
): Promise<RunningGateway> {
  const { listeners, limits, timeouts, featureGates, policy } = configuration;
  const { ticketKeys } = surroundings;
  /** Our own, as configured and, where the system chooses the port, once they listen, and the live API's: no node may be there. */
  const listenerAddresses = [listeners.apiServer, listeners.admin]
    .filter(({ port }) => port !== 0)
    .map(({ address: host, port }) => ({ host, port }));
  const metrics = new Metrics();
  const stopObservingFaults = observeFaults(logger, metrics);
  stops.push(async () => stopObservingFaults());
  const clock = new SessionClock();
  const sessions = new Sessions(limits.maxConcurrentSessions);
  metrics.observeRunningSessions(() => sessions.list());

  const cluster = await buildCluster(configuration, metrics, logger, surroundings.lastGoodManifests);
  stops.push(() => cluster.stop());
  const { store } = cluster;
  if (cluster.apiEndpoint !== undefined) listenerAddresses.push(cluster.apiEndpoint);
  const authentication = await buildAuthenticator(configuration, metrics, logger);
  stops.push(() => authentication.stop());
  const { authenticator, authorities } = authentication;
  const authorization = await buildAuthorizer(configuration.authorization, store, logger);
  stops.push(() => authorization.stop());
  const auditing = await buildAudit(configuration.audit, metrics, logger, surroundings.openAuditLog);
  stops.push(() => auditing.stop());
  const nodes = buildKnownNodes(configuration, clock, metrics);
  const policyInForce: GatewayPolicy = { rules: policy.rules, quotas: surroundings.quotasOf(policy.limits) };
  const gateway: ServingContext & { readonly metrics: Metrics } = {
    authenticator,
    audit: auditing.audit,
    authorizer: authorization.authorizer,
    policy: policyInForce,
    cluster: store,
    lookUp: cluster.lookUp,
    edge: new EdgeRules(configuration.edge),
    gates: featureGates,
    limits,
    timeouts,
    nodes,
    kubelet: await buildKubelet(configuration, () => listenerAddresses),
    clock,
    bandwidth:
      limits.maxConnectionBytesPerSecond === 0
        ? undefined
        : new Bandwidth(limits.maxConnectionBytesPerSecond),
    sessions,
    resumable: buildResumption(configuration, { clock, metrics, logger }, surroundings),
    metrics,
    logger,
  };

  const apiServerUpstream = (await upstreamApiServerOf(configuration)) ?? cluster.apiServer;
  stops.push(() => apiServerUpstream?.close());
  const other =
    apiServerUpstream === undefined
      ? answerFromCluster(gateway, CLAIMED_KUBERNETES_VERSION)
      : forwardToApiServer(gateway, apiServerUpstream);
  const { apiServer } = listeners;
  const tls = apiServer.tls && (await readServingTls(apiServer.tls, authorities, ticketKeys));
  const api = createApiServer(gateway, other, { tls, http2: apiServer.http2 });
  const node =
    listeners.kubelet &&
    (await buildKubeletListener(
      listeners.kubelet,
      configuration,
      { authentication, authorization },
      gateway,
      metrics,
      ticketKeys,
    ));
  stops.push(() => node?.stop());
  const listSessions = () => [...sessions.list(), ...(node?.gateway.sessions.list() ?? [])];
  const listNodes = nodesForOperators(configuration, store, nodes);
  // The admin listener answers while the rest is being started.
  let startedProbes: Pick<BuiltProbes, "listProbes"> | undefined;
  const admin = createAdminServer({
    metrics,
    limits,
    allowedHosts: listeners.admin.allowedHosts,
    readinessChecks: {
      ...cluster.readinessChecks,
      draining: () => (sessions.isDraining ? "the gateway is shutting down" : undefined),
    },
    listSessions,
    listNodes,
    listProbes: () => startedProbes?.listProbes() ?? [],
    logger,
  });
  const closeApi = closerOf(api.server);
  const closeNode = node && closerOf(node.listener.server);
  const holderServer = await startHolderServer(gateway, { refuseUpgrade });
  const closeHolder = holderServer && closerOf(holderServer);
  stops.push(() => Promise.all([closeApi(), closeNode?.(), closeHolder?.(), closeServer(admin)]));
  const apiServerAt = await surroundings.listen(api.server, "apiServer", apiServer);
  const adminAt = await surroundings.listen(admin, "admin", listeners.admin);
  const nodeAt =
    node &&
    listeners.kubelet &&
    (await surroundings.listen(node.listener.server, "kubelet", listeners.kubelet));
  listenerAddresses.push(...[apiServerAt, adminAt].map(({ address: host, port }) => ({ host, port })));
  const watchedTls =
    apiServer.tls &&
    watchServingTls(replaceTlsOf(api.server), apiServer.tls, authorities, logger, ticketKeys);
  stops.push(() => watchedTls?.stop());

  const probeParts: ProbeParts = {
    node: node && listeners.kubelet && { ...listeners.kubelet.runtime, runtime: node.runtime },
    store,
    publishStatus: cluster.publishPodStatus,
    events: cluster.events,
    nodes,
    kubelet: gateway.kubelet,
    metrics,
    logger,
  };
  const { shareFindings } = surroundings;
  const sharedProbes = shareFindings && buildSharedProbes(configuration, probeParts, shareFindings);
  const probes = sharedProbes ?? (await buildProbes(configuration, probeParts));
  startedProbes = probes;
  stops.push(() => probes.stop());
  const ingress =
    listeners.ingress &&
    (await startIngress(
      listeners.ingress,
      configuration,
      cluster,
      { ...gateway, ...probes },
      api,
      surroundings,
    ));
  const apiServerUrl = urlOf(tls === undefined ? "http" : "https", apiServerAt);
  const adminUrl = urlOf("http", adminAt);
  const kubeletUrl = nodeAt && urlOf(listeners.kubelet?.tls === undefined ? "http" : "https", nodeAt);
  const urls: ListenerUrls = {
    apiServerUrl,
    adminUrl,
    kubeletUrl,
    ingress: ingress && { httpUrl: ingress.httpUrl, httpsUrl: ingress.httpsUrl },
  };
  surroundings.announce(logger, { ...urls }, "the gateway is ready");
  return {
    apiServerUrl,
    adminUrl,
    kubeletUrl,
    ingress,
    listening: urlsByListener(urls),
    sessions: listSessions,
    nodes: listNodes,
    probes: sharedProbes ?? { learn: () => {}, begin: async () => {}, listProbes: () => probes.listProbes() },
    metrics: () => metrics.snapshot(),
    async reload({ policy: { rules, limits: sessionLimits } }): Promise<void> {
      policyInForce.rules = rules;
      policyInForce.quotas.replaceLimits?.(sessionLimits);
      await Promise.all([cluster.reload(), watchedTls?.reload(), node?.reload(), ingress?.reload()]);
    },
    async shutDown(): Promise<void> {
      // Of several processes the one that probes for all goes on as long as it lives: nobody else knows that it will end.
      if (sharedProbes === undefined) probes.stop();
      await Promise.all([
        cluster.withdraw(),
        ingress?.drain(timeouts.shutdownGracePeriodMs),
        drainGateway(gateway, api),
        node && drainGateway(node.gateway, node.listener),
      ]);
      sharedProbes?.stop();
      await ingress?.stop();
      watchedTls?.stop();
      authentication.stop();
      authorization.stop();
      await cluster.stop();
      apiServerUpstream?.close();
      node?.stop();
      await Promise.all([closeApi(), closeNode?.(), closeHolder?.(), closeServer(admin)]);
      // Connections to nodes may still wait for a peer that does not close.
      clock.expireAll();
      await auditing.stop();
      stopObservingFaults();
      surroundings.announce(logger, {}, "the gateway has stopped");
    },
  };
}

async function upstreamApiServerOf({ upstreamAPIServer, timeouts }: GatewayConfiguration) {
  if (upstreamAPIServer === undefined) return undefined;
  const endpoint = await endpointOfUrl(upstreamAPIServer.url, upstreamAPIServer);
  const upstream = new HttpUpstream({ endpoint, dialTimeoutMs: timeouts.dialMs });
  const impersonates = upstreamAPIServer.clientCertificateFile !== undefined;
  return { upstream, impersonates, close: () => upstream.close() };
}
