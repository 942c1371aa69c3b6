import { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { Tracing } from "@sluice/client/internal/observability/trace";
import type { BuiltAudit } from "../access/audit/component.ts";
import type { BuiltAuthenticator } from "../access/authn/component.ts";
import { Impersonation } from "../access/authn/impersonation.ts";
import type { BuiltAuthorizer } from "../access/authz/component.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { SessionAuthorization } from "../config/sections/authorization.ts";
import type { BuiltCluster } from "../kubernetes/component.ts";
import { buildKubelet } from "../legs/api-server/kubelets-component.ts";
import type { Component } from "../lifecycle/component.ts";
import { refuseUpgrade } from "../listeners/answer.ts";
import { startListener } from "../listeners/component.ts";
import { EdgeRules, type ServingContext } from "../listeners/edge-rules.ts";
import type { ReservedEndpoint } from "../net/address-rules.ts";
import { Bandwidth } from "../net/bandwidth.ts";
import type { ReadFile } from "../net/followed-files.ts";
import { listenAtPath } from "../net/listen.ts";
import { tlsOptionsOf, type UpstreamTlsFiles } from "../net/upstream-tls-files.ts";
import { buildKnownNodes } from "../nodes/component.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { BuiltRecording } from "../recording/component.ts";
import type { GatewayContext, SessionPeers } from "../sessions/context.ts";
import { Reauthorizer } from "../sessions/reauthorizer.ts";
import { buildResumption, type Siblings } from "../sessions/resumable/component.ts";
import type { ReplicaName } from "../sessions/resumable/session-owner.ts";
import { createOwnerServer } from "../sessions/resumption/owner-server.ts";
import type { Screens } from "../sessions/screens/screens.ts";
import { Sessions, type SessionWatcher } from "../sessions/sessions.ts";

interface SessionsParts {
  readonly cluster: Pick<BuiltCluster, "store" | "lookUp">;
  readonly authentication: Pick<BuiltAuthenticator, "authenticator">;
  readonly authorization: Pick<BuiltAuthorizer, "authorizer">;
  readonly audit: Pick<BuiltAudit, "audit">;
  readonly policy: { readonly inForce: NonNullable<GatewayContext["policy"]> };
  /**
   * This process's API server endpoints, read at each dial: no node may have one of these
   * addresses.
   */
  readonly ownEndpoints: () => readonly ReservedEndpoint[];
  readonly upstreams: UpstreamTlsFiles;
  readonly replicaId: string;
  /** Absent: nothing is recorded. */
  readonly recording: BuiltRecording | undefined;
  readonly siblings: Siblings | undefined;
  /** Absent: this gateway is the only replica. */
  readonly replicas: { readonly name: ReplicaName; readonly peers: SessionPeers } | undefined;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly tracing: Tracing | undefined;
  readonly sessionWatcher: SessionWatcher | undefined;
  /** Absent: no output is kept. */
  readonly screens: Pick<Screens, "began"> | undefined;
}

interface BuiltSessions extends Component {
  readonly context: ServingContext & { readonly metrics: Metrics };
}

/** Builds the context that all sessions share. Stopping it aborts requests that still wait for a peer. */
export async function buildSessions(
  configuration: GatewayConfiguration,
  parts: SessionsParts,
): Promise<BuiltSessions> {
  const { limits, timeouts, featureGates, edge } = configuration;
  const { cluster, metrics, logger } = parts;
  const clock = new SessionClock();
  const sessions = new Sessions(limits.maxConcurrentSessions, parts.replicaId);
  sessions.watch(parts.sessionWatcher);
  sessions.onTerminal((session) => parts.screens?.began(session));
  metrics.observeRunningSessions(() => sessions.list());
  const bytesPerSecond = limits.maxConnectionBytesPerSecond;
  return {
    context: {
      authenticator: parts.authentication.authenticator,
      audit: parts.audit.audit,
      authorizer: parts.authorization.authorizer,
      impersonation: new Impersonation(
        parts.authorization.authorizer,
        featureGates.isEnabled("ConstrainedImpersonation"),
      ),
      policy: parts.policy.inForce,
      cluster: cluster.store,
      lookUp: cluster.lookUp,
      edge: new EdgeRules(edge),
      gates: featureGates,
      limits,
      timeouts,
      nodes: buildKnownNodes(configuration, clock, metrics, logger),
      kubelet: await buildKubelet(configuration, parts.ownEndpoints, parts.upstreams, { metrics, logger }),
      clock,
      reauthorizer: new Reauthorizer({
        settings: configuration.sessions,
        clock,
        onResult: (result) => metrics.access.reauthorized(result),
      }),
      separateForwards: await loadSeparateForwards(configuration.sessions),
      beforeDial: parts.recording?.beforeDial,
      recordingRules: parts.recording?.rules,
      bandwidth: bytesPerSecond === 0 ? undefined : new Bandwidth(bytesPerSecond),
      sessions,
      resumable: buildResumption(
        configuration,
        { clock, metrics, logger },
        {
          siblings: parts.siblings,
          replica: parts.replicas?.name,
        },
      ),
      peers: parts.replicas?.peers,
      metrics,
      logger,
      tracing: parts.tracing,
    },
    stop: () => clock.expireAll(),
  };
}

/** Loads the modules only if the configuration needs them. */
async function loadSeparateForwards({ portForward }: SessionAuthorization) {
  if (portForward.connections === "shared") return undefined;
  const { SeparateForwards } = await import("../sessions/carriers/forwards/separate-forwards.ts");
  return SeparateForwards;
}

interface StartedRecording extends Component {
  /** Absent: nothing is recorded. */
  readonly recording?: BuiltRecording | undefined;
}

/**
 * Starts the recorder if sessions are recorded. Its modules are loaded only then. Rejects as
 * `buildRecording`, and as UpstreamTlsFiles for the authorities of the store.
 */
export async function startRecording(
  { recording: settings }: GatewayConfiguration,
  cluster: Pick<BuiltCluster, "store">,
  {
    upstreams,
    ...parts
  }: Pick<SessionsParts, "metrics" | "logger" | "upstreams"> & { readonly program?: URL },
): Promise<StartedRecording> {
  if (settings === undefined) return { stop: () => {} };
  const { buildRecording } = await import("../recording/component.ts");
  let recording: BuiltRecording | undefined;
  let newest = await followStore(settings.s3, upstreams, (ca) => {
    newest = ca;
    recording?.trustStore(ca);
  });
  const storeCa = newest;
  recording = await buildRecording(settings, { ...parts, storeCa, cluster: cluster.store });
  // The file may have changed while the recorder started.
  if (newest !== storeCa) recording.trustStore(newest);
  return { ...recording, recording };
}

/** Reads the store's CA certificates. Calls `changed` with the new text whenever the file changes. */
async function followStore(
  store: NonNullable<GatewayConfiguration["recording"]>["s3"],
  upstreams: UpstreamTlsFiles,
  changed: (ca: string | undefined) => void,
): Promise<string | undefined> {
  if (store?.caFile === undefined || store.endpoint.startsWith("http:")) return undefined;
  const files = {
    certificateAuthorityFile: store.caFile,
    clientCertificateFile: undefined,
    clientKeyFile: undefined,
    insecureSkipTLSVerify: false,
  };
  const use = "recordingStore";
  const noted = (options: Awaited<ReturnType<typeof tlsOptionsOf>>): string | undefined => {
    upstreams.note(use, options);
    return options.ca?.toString();
  };
  const read = (file: ReadFile) => tlsOptionsOf(files, file);
  return noted(await upstreams.follow(use, read, (next) => changed(noted(next))));
}

/**
 * Listens for resumptions that other processes of this gateway received; does nothing if there are no
 * others.
 */
export async function startOwnerListener(context: ServingContext): Promise<Component> {
  const socketPath = context.resumable?.owner?.socketPath;
  if (socketPath === undefined) return { stop: () => {} };
  return startListener(createOwnerServer(context, { refuseUpgrade }), (server) =>
    listenAtPath(server, socketPath),
  );
}
