import type { ConnectTrace } from "@sluice/client";
import type { Kubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import { StaticTokens } from "../../access/authn/static-tokens.ts";
import { defaultConfiguration } from "../../config/configuration.ts";
import type { Timeouts } from "../../config/sections/timeouts.ts";
import type { Component } from "../../lifecycle/component.ts";
import { EdgeRules } from "../../listeners/edge-rules.ts";
import type { Listener } from "../../listeners/listener.ts";
import type { ServingTls } from "../../listeners/serving-tls.ts";
import { drainGateway } from "../../listeners/shutdown.ts";
import { buildKnownNodes } from "../../nodes/component.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { Sessions } from "../../sessions/sessions.ts";
import type { AgentContext } from "./agent-context.ts";
import { createAgentServer } from "./agent-server.ts";
import { AgentUpstream } from "./agent-upstream.ts";

export interface AgentLegOptions {
  /** The API server and its user's credentials. */
  readonly kubeconfig: Kubeconfig;
  readonly tls: Pick<ServingTls, "cert" | "key">;
  /** Every request must carry it. */
  readonly token: string;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Times the knowledge about the API server; by default the session clock. */
  readonly memoryClock?: { now(): number } | undefined;
  readonly logger: Logger;
  /** Notified of every request to the API server. */
  readonly trace?: ConnectTrace | undefined;
  /** Tells the user why sessions take their paths. */
  note(text: string): void;
}

interface AgentLeg extends Component {
  readonly context: AgentContext;
  readonly listener: Listener;
}

/** The user waits at a terminal, and kubectl reports broken sessions. */
const SHUTDOWN_GRACE_MS = 0;
/** Dialling the API server: name lookup, TCP and TLS, as client-go's dialler. Past it: 503. */
const DIAL_MS = 30_000;

/** Builds the agent's leg, not yet listening. Throws if the kubeconfig is invalid. */
export function buildAgentLeg(options: AgentLegOptions, metrics: Metrics): AgentLeg {
  const { kubeconfig, logger, trace, tls } = options;
  const { limits, kubelet, edge, timeouts: defaults } = defaultConfiguration();
  const timeouts = {
    ...defaults,
    dialMs: DIAL_MS,
    shutdownGracePeriodMs: SHUTDOWN_GRACE_MS,
    ...options.timeouts,
  };
  const clock = new SessionClock();
  const sessions = new Sessions(limits.maxConcurrentSessions);
  metrics.observeRunningSessions(() => sessions.list());
  const user = { name: "agent", uid: "", groups: [], extra: {} };
  const context: AgentContext = {
    authenticator: new StaticTokens([{ token: options.token, user }]),
    upstream: new AgentUpstream(kubeconfig, { dialTimeoutMs: timeouts.dialMs, trace }),
    edge: new EdgeRules(edge),
    limits,
    timeouts,
    nodes: buildKnownNodes({ kubelet, limits, timeouts }, options.memoryClock ?? clock, metrics, logger),
    clock,
    sessions,
    metrics,
    logger,
    note: (text) => options.note(text),
  };
  const listener = createAgentServer(context, { tls: { ...tls, clientAuthorities: [] }, http2: true });
  return {
    context,
    listener,
    drain: () => drainGateway(context, listener),
    stop: () => {
      context.upstream.close();
      clock.expireAll();
    },
  };
}
