// src/app: the gateway composed of its components; reload; one process, or a primary and its workers (`src/app/runtime`)

import { buildAudit } from "../access/audit/component.ts";
import { buildAuthenticator } from "../access/authn/component.ts";
import { buildAuthorizer } from "../access/authz/component.ts";
import { buildPolicy } from "../access/policy/component.ts";
import { createAdminServer } from "../admin/admin-server.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { startIngress } from "../ingress/component.ts";
import { buildCluster } from "../kubernetes/component.ts";
import { startPodDeletionCost } from "../kubernetes/pod-deletion-cost.ts";
import { buildApiServerLeg } from "../legs/api-server/component.ts";
import { buildKubeletListener } from "../legs/kubelet/component.ts";
import { type Departure, Supervisor } from "../lifecycle/supervisor.ts";
import type { ReservedEndpoint } from "../net/address-rules.ts";
import { nodesForOperators } from "../nodes/component.ts";
import type { DescribedNode } from "../nodes/describe-nodes.ts";
import { createLogger, type Logger } from "../observability/logger.ts";
import { Metrics } from "../observability/metrics.ts";
import { openTelemetry } from "../observability/open-telemetry.ts";
import type { ReloadMetrics } from "../observability/operations-metrics.ts";
import { buildPeers } from "../peers/component.ts";
import { type RunningProbes, startProbes } from "../probes/shared-probes-component.ts";
import { FolderRecordings } from "../session-api/folder-recordings.ts";
import { answerPeer, PeerRecordings } from "../session-api/peer-recordings.ts";
import { StoreRecordings } from "../session-api/store-recordings.ts";
import { Screens } from "../sessions/screens/screens.ts";
import { newReplicaId } from "../sessions/session-id.ts";
import { buildCertificates, noteWarnings } from "./certificates-component.ts";
import { watchDescriptors } from "./descriptor-watch.ts";
import { type ListenerUrls, OpenListeners, readyFields } from "./open-listeners.ts";
import { type Runtime, singleProcess } from "./runtime.ts";
import { SessionDirectory } from "./session-directory.ts";
import { buildSessions, startOwnerListener, startRecording } from "./sessions-component.ts";
import { observeFaults } from "./uncaught-exceptions.ts";

export interface RunningGateway {
  /** The listeners' URLs, with the ports that the system assigned. */
  readonly apiServerUrl: string | undefined;
  readonly adminUrl: string;
  readonly ingress: { readonly httpUrl: string; readonly httpsUrl: string } | undefined;
  /** Absent if this process does not serve as a node. */
  readonly kubeletUrl?: string | undefined;
  /** Every listener's URL, by name. */
  readonly listening: ListenerUrls;
  /**
   * Refuses new upgrades and waits for sessions; after the grace period ends them with a truthful
   * status.
   */
  shutDown(departure?: Departure): Promise<void>;
  readonly sessions: SessionDirectory;
  /** What the gateway knows about every node, or about one node. */
  nodes(name?: string): readonly DescribedNode[];
  /** Applies policy and the contents of the files that the configuration names. */
  reload(configuration: GatewayConfiguration): Promise<void>;
  /** Keeps serving, and asks clients to leave. */
  enterLameDuck(hasSuccessor: boolean): Promise<void>;
  /** Absent in a worker, which gets its configuration from the primary. */
  readonly reloads: ReloadMetrics | undefined;
  /** Lets processes share probes. */
  readonly probes: Pick<RunningProbes, "learn" | "begin" | "listProbes">;
  /** Metrics as JSON, for merging with those of other processes. */
  metrics(): Promise<readonly object[]>;
}

/**
 * Starts a gateway from a configuration. Components start from top to bottom and stop in reverse.
 * Throws ConfigurationError for invalid files, before any port is opened.
 */
// oxlint-disable-next-line eslint/max-lines-per-function -- a list of components, in one order.
export async function startGateway(
  configuration: GatewayConfiguration,
  logger: Logger = createLogger(configuration.logging),
  runtime: Runtime = singleProcess,
  app: Supervisor = new Supervisor(logger),
): Promise<RunningGateway> {
  const { listeners, limits, timeouts } = configuration;
  const { ticketKeys, siblings, replicaId = newReplicaId() } = runtime;
  const open = new OpenListeners(listeners, runtime.listen);
  const metrics = new Metrics();
  const reloads = runtime.readsConfiguration ? metrics.addReloads() : undefined;
  metrics.operations.observeDraining(() => app.isDraining);

  app.add("faults", () => ({ stop: observeFaults(logger, metrics) }));
  app.add("descriptors", () => watchDescriptors({ logger }));
  const cluster = app.add("cluster", () =>
    buildCluster(configuration, metrics, logger, runtime.lastGoodManifests),
  );
  const certificates = app.add("certificates", () => buildCertificates(metrics, logger, runtime.isFirst));
  app.add("configuration", () => noteWarnings(configuration));
  const authentication = app.add("authentication", () =>
    buildAuthenticator(configuration, metrics, logger, certificates.started.upstreams),
  );
  const authorization = app.add("authorization", () =>
    buildAuthorizer(
      configuration.authorization,
      cluster.started.store,
      logger,
      certificates.started.upstreams,
    ),
  );
  const audit = app.add("audit", () =>
    buildAudit(configuration.audit, metrics, logger, certificates.started.upstreams, runtime.openAuditLog),
  );
  const quotas = app.add("quotas", async () => {
    const { quotaStore } = configuration;
    // Each connection reads the files itself, in the primary if there is one: followed for their expiry.
    if (quotaStore?.url.startsWith("rediss:"))
      await certificates.started.upstreams.tls("quotaStore", quotaStore);
    return await runtime.buildQuotas(configuration, metrics, logger);
  });
  const policy = app.add("policy", () => buildPolicy(configuration.policy, quotas.started.quotas));
  const { peers: peersSettings, kubelet: kubeletSettings } = listeners;
  const peers =
    peersSettings &&
    app.add("peers", () =>
      buildPeers(peersSettings, configuration, { ...cluster.started, replicaId, metrics, logger }),
    );
  const { tracing: tracingSettings } = configuration;
  const tracing = tracingSettings && app.add("tracing", () => openTelemetry(tracingSettings, metrics.traces));
  const recorder = app.add("recorder", () => {
    const { upstreams } = certificates.started;
    return startRecording(configuration, cluster.started, { upstreams, metrics, logger });
  });
  const screens = configuration.sessions.currentScreen === "keep" ? new Screens() : undefined;
  const sessions = app.add("sessions", () =>
    buildSessions(configuration, {
      cluster: cluster.started,
      authentication: authentication.started,
      authorization: authorization.started,
      audit: audit.started,
      policy: policy.started,
      ownEndpoints: () => ownEndpoints(),
      upstreams: certificates.started.upstreams,
      replicaId,
      siblings,
      replicas: peers?.started,
      tracing: tracing?.started,
      recording: recorder.started.recording,
      metrics,
      logger,
      sessionWatcher: runtime.sessionWatcher,
      screens,
    }),
  );
  const recordings = new FolderRecordings(configuration.recording?.folder);
  const api = app.add("API server leg", () =>
    buildApiServerLeg(configuration, sessions.started.context, {
      authorities: authentication.started.authorities,
      apiServer: cluster.started.apiServer,
      judgeConnect: cluster.started.judgeConnect,
      sessions: directory,
      recordings: {
        own: recordings,
        peers: new PeerRecordings(() => peers?.ifStarted?.peers),
        store: new StoreRecordings(configuration.recording?.s3, recorder.started.recording?.storeTrust),
      },
      ticketKeys,
      operations: metrics.operations,
      upstreams: certificates.started.upstreams,
    }),
  );
  if (configuration.cluster.live?.podDeletionCost === true && runtime.isFirst !== false) {
    app.add("pod deletion cost", () => {
      const { live } = cluster.started;
      const countSessions = async () => {
        const { sessions: listed, partial } = await directory.listReplica();
        return partial.length === 0 ? listed.length : undefined;
      };
      return live === undefined ? { stop: () => {} } : startPodDeletionCost(live, countSessions, logger);
    });
  }
  const kubelet =
    kubeletSettings &&
    app.add("kubelet leg", () =>
      buildKubeletListener({
        listener: kubeletSettings,
        configuration,
        shared: { authentication: authentication.started, authorization: authorization.started },
        base: sessions.started.context,
        metrics,
        upstreams: certificates.started.upstreams,
        ticketKeys,
        sessionWatcher: runtime.sessionWatcher,
        screens,
      }),
    );
  // All files have been read; only the components from here on open ports.
  app.add("session owner listener", () => startOwnerListener(sessions.started.context));
  if (peers !== undefined)
    app.add("peers listener", () => {
      const gateway = sessions.started.context;
      const answerRecordings = (question: unknown) => answerPeer(recordings, question);
      const server = peers.started.createServer({ gateway, sessions: directory, answerRecordings });
      return open.start("peers", server);
    });
  if (listeners.apiServer !== undefined)
    app.add("apiServer listener", () => open.start("apiServer", api.started.listener.server));
  app.add("admin listener", () =>
    open.start(
      "admin",
      createAdminServer({
        metrics,
        limits,
        allowedHosts: listeners.admin.allowedHosts,
        readinessChecks: { ...app.healthChecks, ...app.lifeChecks },
        listSessions: () => directory.listHere(),
        listAllSessions: () => directory.listAll(directory.listHere()),
        listNodes,
        // The admin listener already answers while later components start.
        listProbes: () => probes.ifStarted?.listProbes() ?? [],
        logger,
      }),
    ),
  );
  if (kubelet !== undefined)
    app.add("kubelet listener", () => open.start("kubelet", kubelet.started.listener.server));
  const probes = app.add("probes", () => {
    const { nodes, kubelet: kubelets } = sessions.started.context;
    const { store, live, publishPodStatus, events } = cluster.started;
    const { replicaId } = runtime;
    const node = kubelet &&
      kubeletSettings && { ...kubeletSettings.runtime, runtime: kubelet.started.runtime };
    return startProbes(
      configuration,
      {
        node,
        live,
        replicaId,
        store,
        publishStatus: publishPodStatus,
        events,
        nodes,
        kubelet: kubelets,
        metrics,
        logger,
      },
      runtime.shareFindings,
    );
  });
  const { ingress: ingressSettings } = listeners;
  if (ingressSettings !== undefined)
    app.add("ingress", () =>
      startIngress({
        listener: ingressSettings,
        configuration,
        cluster: cluster.started,
        gateway: { ...sessions.started.context, isGatewayHealthy: probes.started.isGatewayHealthy },
        api: api.started.listener,
        runtime: { listen: open.listen, ticketKeys },
        upstreams: certificates.started.upstreams,
      }),
    );

  /** The API servers' endpoints; no node may have one of these addresses. */
  const ownEndpoints = (): ReservedEndpoint[] => [...open.reserved(), ...cluster.started.listApiEndpoints()];
  const directory = new SessionDirectory({
    replicaId,
    registries: () => [sessions, kubelet].flatMap((leg) => leg?.ifStarted?.context.sessions ?? []),
    screens,
    processes: runtime.replicaSessions,
    peers: () => peers?.ifStarted?.peers,
  });
  metrics.access.observeViewers(
    () => directory.viewers,
    () => directory.joiners,
  );
  const listNodes = (name?: string) =>
    nodesForOperators(configuration, cluster.started.store, sessions.started.context.nodes)(name);

  await app.start();

  const urls = open.urls();
  runtime.announce(logger, readyFields(urls), "the gateway is ready");
  const { "ingress.http": httpUrl, "ingress.https": httpsUrl } = urls;
  return {
    apiServerUrl: urls.apiServer,
    adminUrl: urls.admin ?? "",
    kubeletUrl: urls.kubelet,
    ingress: httpUrl === undefined || httpsUrl === undefined ? undefined : { httpUrl, httpsUrl },
    listening: urls,
    sessions: directory,
    nodes: listNodes,
    reloads,
    probes: probes.started,
    metrics: () => metrics.snapshot(),
    reload: (next) => app.reload(next),
    enterLameDuck: (hasSuccessor) => app.enterLameDuck(hasSuccessor),
    shutDown: async (departure) => {
      // The primary has already waited for its workers.
      const delayMs = runtime.readsConfiguration ? timeouts.shutdownDelayMs : 0;
      const notStopped = await app.shutDown(
        timeouts.shutdownGracePeriodMs,
        departure ?? { delayMs, hasSuccessor: false },
      );
      runtime.announce(logger, notStopped.length === 0 ? {} : { notStopped }, "the gateway has stopped");
    },
  };
}
