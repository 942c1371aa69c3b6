import { CLAIMED_KUBERNETES_VERSION } from "@sluice/client/internal/config/version";
import type { WatchedAuthority } from "../../access/authn/component.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { type ApiServerUpstream, upstreamApiServerOf } from "../../kubernetes/api-server-upstream.ts";
import type { Component } from "../../lifecycle/component.ts";
import type { ServingContext } from "../../listeners/edge-rules.ts";
import type { Listener } from "../../listeners/listener.ts";
import { readServingTls, replaceTlsOf, watchServingTls } from "../../listeners/serving-certificate.ts";
import { drainGateway } from "../../listeners/shutdown.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { OperationsMetrics } from "../../observability/operations-metrics.ts";
import type { RecordingsPlaces } from "../../session-api/recordings-api.ts";
import { type GatewaySessions, SessionsApi } from "../../session-api/sessions-api.ts";
import { answerFromCluster } from "./answer-from-cluster.ts";
import { withSessionsApi } from "./answer-sessions.ts";
import { createApiServer } from "./api-server.ts";
import type { AdmissionRoute } from "./api-server-leg.ts";
import { forwardToApiServer } from "./forward-to-api-server.ts";

interface ApiServerLeg extends Component {
  readonly listener: Listener;
}

interface ApiServerLegParts {
  /** The listener requests client certificates from these authorities. */
  readonly authorities: readonly WatchedAuthority[];
  /**
   * The upstream for all other requests if the configuration names none; undefined: answers come
   * from cluster state.
   */
  readonly apiServer: ApiServerUpstream | undefined;
  /** Absent: every session goes to its node. */
  readonly judgeConnect: AdmissionRoute["judge"] | undefined;
  /** Encrypts TLS tickets; absent: this process makes its own keys. */
  readonly ticketKeys?: Buffer | undefined;
  readonly upstreams: UpstreamTlsFiles;
  /** The sessions that the API group shows and ends. */
  readonly sessions: GatewaySessions;
  /** The folders whose finished recordings it shows and deletes. */
  readonly recordings: RecordingsPlaces;
  readonly operations: Pick<OperationsMetrics, "certificateServed">;
}

/**
 * Builds the API-server leg, not yet listening. Throws ConfigurationError for unreadable or invalid
 * files.
 */
export async function buildApiServerLeg(
  configuration: GatewayConfiguration,
  gateway: ServingContext,
  parts: ApiServerLegParts,
): Promise<ApiServerLeg> {
  const { authorities, apiServer, judgeConnect, ticketKeys, operations, upstreams } = parts;
  const { tls: files, http2 = true, proxyProtocol } = configuration.listeners.apiServer ?? {};
  const tls = files && (await readServingTls(files, authorities, ticketKeys));
  const configured = await upstreamApiServerOf(configuration, upstreams);
  const upstream = configured ?? apiServer;
  const other =
    upstream === undefined
      ? answerFromCluster(gateway, CLAIMED_KUBERNETES_VERSION)
      : forwardToApiServer(gateway, upstream);
  const route = judgeConnect && upstream && { judge: judgeConnect, apiServer: upstream };
  const sessionsApi = new SessionsApi(parts.sessions, parts.recordings);
  const all = withSessionsApi(other, sessionsApi, gateway);
  const listener = createApiServer(gateway, all, { tls, http2, proxyProtocol }, route);
  const watched =
    tls &&
    files &&
    watchServingTls(replaceTlsOf(listener.server), {
      files,
      current: tls,
      authorities,
      logger: gateway.logger,
      ticketKeys,
      onServed: (cert) => operations.certificateServed("apiServer", cert),
    });
  return {
    listener,
    reload: async () => await watched?.reload(),
    enterLameDuck: (hasSuccessor) => {
      listener.drain();
      if (gateway.resumable !== undefined) gateway.resumable.returnsElsewhere = hasSuccessor;
    },
    drain: () => drainGateway(gateway, listener),
    stop: () => {
      watched?.stop();
      sessionsApi.stop();
      configured?.close();
    },
  };
}
