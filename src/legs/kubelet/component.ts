import {
  type BuiltAuthenticator,
  buildAuthenticator,
  type WatchedAuthority,
} from "../../access/authn/component.ts";
import { type BuiltAuthorizer, buildAuthorizer } from "../../access/authz/component.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { CriRuntime } from "../../cri/cri-runtime.ts";
import { type Component, Started } from "../../lifecycle/component.ts";
import type { ServingContext } from "../../listeners/edge-rules.ts";
import type { Listener } from "../../listeners/listener.ts";
import { readServingTls, replaceTlsOf, watchServingTls } from "../../listeners/serving-certificate.ts";
import { drainGateway } from "../../listeners/shutdown.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Metrics } from "../../observability/metrics.ts";
import type { Screens } from "../../sessions/screens/screens.ts";
import { Sessions, type SessionWatcher } from "../../sessions/sessions.ts";
import { createKubeletServer } from "./kubelet-server.ts";
import { KubeletUpstream } from "./kubelet-upstream.ts";

interface BuiltKubeletListener extends Component {
  readonly listener: Listener;
  /** The gateway with this listener's own authenticator, authorizer and sessions. */
  readonly context: ServingContext;
  readonly runtime: CriRuntime;
}

/** The gateway's access settings, for a listener without its own. */
interface SharedAccess {
  readonly authentication: BuiltAuthenticator;
  readonly authorization: BuiltAuthorizer;
}

interface KubeletListenerParts {
  readonly listener: NonNullable<GatewayConfiguration["listeners"]["kubelet"]>;
  readonly configuration: GatewayConfiguration;
  readonly shared: SharedAccess;
  readonly base: ServingContext;
  readonly metrics: Metrics;
  readonly upstreams: UpstreamTlsFiles;
  readonly ticketKeys?: Buffer | undefined;
  readonly sessionWatcher?: SessionWatcher | undefined;
  /** Absent: no output is kept. */
  readonly screens: Pick<Screens, "began"> | undefined;
}

/**
 * Builds the kubelet listener, not yet listening. Throws ConfigurationError for unreadable or
 * invalid files.
 */
export function buildKubeletListener(parts: KubeletListenerParts): Promise<BuiltKubeletListener> {
  return Started.building((started) => buildIn(started, parts));
}

async function buildIn(started: Started, parts: KubeletListenerParts): Promise<BuiltKubeletListener> {
  const { listener, configuration, base, metrics, upstreams, ticketKeys, sessionWatcher, screens } = parts;
  const { limits, timeouts } = configuration;
  const { logger } = base;
  const { authentication, authorization } = await ownAccess(started, parts);
  const kubeletMetrics = metrics.addKubelet();
  const sessions = new Sessions(limits.maxConcurrentSessions, base.sessions.replica);
  sessions.watch(sessionWatcher);
  sessions.onTerminal((session) => screens?.began(session));
  kubeletMetrics.observeRunningSessions(() => sessions.list());
  const gateway: ServingContext = {
    ...base,
    authenticator: authentication.authenticator,
    authorizer: authorization.authorizer,
    policy: undefined,
    sessions,
    metrics: kubeletMetrics,
  };
  const { endpoint, nodeName, streamingServer } = listener.runtime;
  const authorities: readonly WatchedAuthority[] = authentication.authorities;
  const tls = listener.tls && (await readServingTls(listener.tls, authorities, ticketKeys));
  const streamingTls = await upstreams.tls("streamingServer", streamingServer);
  const upstream =
    listener.upstream && (await KubeletUpstream.open(listener.upstream, timeouts.dialMs, upstreams));
  if (upstream !== undefined) started.add(upstream, (it) => it.close());
  const runtime = started.add(
    await CriRuntime.open({
      endpoint,
      callTimeoutMs: timeouts.runtimeCallMs,
      maxMessageBytes: limits.maxRuntimeMessageBytes,
    }),
    (it) => it.close(),
  );
  const kubelet = createKubeletServer(
    {
      gateway,
      runtime,
      nodeName,
      streamingTls,
      requiresCreateForUpgrades: listener.requireCreateForUpgrades,
      counters: kubeletMetrics.counters,
      upstream,
    },
    { tls, http2: listener.http2 },
  );
  const watched =
    tls &&
    listener.tls &&
    watchServingTls(replaceTlsOf(kubelet.server), {
      files: listener.tls,
      current: tls,
      authorities,
      logger,
      ticketKeys,
      onServed: (cert) => metrics.operations.certificateServed("kubelet", cert),
    });
  if (watched !== undefined) started.add(watched, (it) => it.stop());
  return {
    listener: kubelet,
    context: gateway,
    runtime,
    reload: async () => await watched?.reload(),
    enterLameDuck: (hasSuccessor) => {
      kubelet.drain();
      if (gateway.resumable !== undefined) gateway.resumable.returnsElsewhere = hasSuccessor;
    },
    drain: () => drainGateway(gateway, kubelet),
    stop: () => started.stop(),
  };
}

/** The listener's own access settings, or else the gateway's. */
async function ownAccess(
  started: Started,
  { listener, configuration, shared, base, metrics, upstreams }: KubeletListenerParts,
): Promise<SharedAccess> {
  const { logger, cluster } = base;
  const { limits } = configuration;
  const authentication =
    listener.authentication === undefined
      ? shared.authentication
      : await buildAuthenticator(
          { authentication: listener.authentication, limits },
          metrics,
          logger,
          upstreams,
        );
  if (authentication !== shared.authentication) started.add(authentication, (it) => it.stop());
  const authorization =
    listener.authorization === undefined
      ? shared.authorization
      : await buildAuthorizer(listener.authorization, cluster, logger, upstreams);
  if (authorization !== shared.authorization) started.add(authorization, (it) => it.stop());
  return { authentication, authorization };
}
