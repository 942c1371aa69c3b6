import { StaticTokens } from "../../access/authn/static-tokens.ts";
import { createAdminServer } from "../../admin/admin-server.ts";
import type { ConnectTrace } from "../../client/index.ts";
import { defaultConfiguration } from "../../config/configuration.ts";
import type { Timeouts } from "../../config/timeouts.ts";
import type { Kubeconfig } from "../../kubernetes/kubeconfig.ts";
import { closerOf, closeServer } from "../../listeners/close-server.ts";
import { EdgeRules } from "../../listeners/edge-rules.ts";
import type { ServingTls } from "../../listeners/serving-tls.ts";
import { drainGateway } from "../../listeners/shutdown.ts";
import { type ListenAddress, listenAt, urlOf } from "../../net/listen.ts";
import { SessionClock } from "../../net/session-clock.ts";
import { buildKnownNodes } from "../../nodes/component.ts";
import type { Logger } from "../../observability/logger.ts";
import { Metrics } from "../../observability/metrics.ts";
import { Sessions } from "../../sessions/sessions.ts";
import type { AgentContext } from "./agent-context.ts";
import { createAgentServer } from "./agent-server.ts";
import { AgentUpstream } from "./agent-upstream.ts";

export interface AgentOptions {
  /** The API server, and who the user is there. */
  readonly kubeconfig: Kubeconfig;
  /** Where local clients connect; loopback. */
  readonly listen: ListenAddress;
  readonly tls: Pick<ServingTls, "cert" | "key">;
  /** What every request must bear. */
  readonly token: string;
  /** Health, sessions and metrics; absent: nowhere. */
  readonly admin?: ListenAddress | undefined;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** What is learned of the API server is timed by it; the session clock unless said otherwise. */
  readonly memoryClock?: { now(): number } | undefined;
  readonly logger: Logger;
  /** Is told of every request to the API server. */
  readonly trace?: ConnectTrace | undefined;
  /** Is told why sessions travel as they do. */
  note(text: string): void;
}

export interface RunningAgent {
  readonly url: string;
  readonly adminUrl: string | undefined;
  readonly metrics: Metrics;
  /** Ends what runs, each session with an honest status, and what listens. */
  shutDown(): Promise<void>;
}

/** The user waits at a terminal, and kubectl says what broke. */
const SHUTDOWN_GRACE_MS = 0;
/** client-go's dialler. */
const DIAL_MS = 30_000;

/** The agent's composition root. Rejects where it cannot listen. */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { kubeconfig: credentials, logger, trace } = options;
  const { limits, kubelet, edge, timeouts: defaults } = defaultConfiguration();
  const timeouts = {
    ...defaults,
    dialMs: DIAL_MS,
    shutdownGracePeriodMs: SHUTDOWN_GRACE_MS,
    ...options.timeouts,
  };
  const metrics = new Metrics();
  const clock = new SessionClock();
  const sessions = new Sessions(limits.maxConcurrentSessions);
  metrics.observeRunningSessions(() => sessions.list());
  const user = { name: "agent", uid: "", groups: [], extra: {} };
  const agent: AgentContext = {
    authenticator: new StaticTokens([{ token: options.token, user }]),
    upstream: new AgentUpstream(credentials, { dialTimeoutMs: timeouts.dialMs, trace }),
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
  const listener = createAgentServer(agent, { tls: { ...options.tls, clientAuthorities: [] }, http2: true });
  const close = closerOf(listener.server);
  const admin =
    options.admin &&
    createAdminServer({
      metrics,
      limits,
      readinessChecks: {},
      listSessions: () => sessions.list(),
      logger,
    });
  const url = urlOf("https", await listenAt(listener.server, options.listen));
  let adminUrl: string | undefined;
  try {
    adminUrl = admin && options.admin && urlOf("http", await listenAt(admin, options.admin));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url,
    adminUrl,
    metrics,
    async shutDown(): Promise<void> {
      await drainGateway(agent, listener);
      agent.upstream.close();
      await Promise.all([close(), admin && closeServer(admin)]);
      clock.expireAll();
    },
  };
}
