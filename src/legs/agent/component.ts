import { STATUS_CODES } from "node:http";
import type { ConnectTrace } from "@sluice/client";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import type { Kubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import { StaticTokens } from "../../access/authn/static-tokens.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { defaultConfiguration } from "../../config/configuration.ts";
import type { Timeouts } from "../../config/sections/timeouts.ts";
import { forwardUpgrade } from "../../http/upgrade/forward-upgrade.ts";
import { forwardExchange } from "../../http/upstream/http-forwarder.ts";
import type { Component } from "../../lifecycle/component.ts";
import { refuseUpgrade, writeStatus } from "../../listeners/answer.ts";
import { EdgeRules } from "../../listeners/edge-rules.ts";
import { exchangeTimesOf } from "../../listeners/exchange-times.ts";
import { createListener, type Listener, type ListenerOptions } from "../../listeners/listener.ts";
import type { ServingTls } from "../../listeners/serving-tls.ts";
import { drainGateway } from "../../listeners/shutdown.ts";
import { buildKnownNodes } from "../../nodes/component.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { carryForwarded } from "../../sessions/carry-forwarded.ts";
import type { IncomingStreaming, PendingClient } from "../../sessions/incoming-request.ts";
import { runSession } from "../../sessions/run-session.ts";
import { Sessions } from "../../sessions/sessions.ts";
import { matchStreamingPath } from "../../sessions/streaming-request.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";
import { agentLeg } from "./agent-leg.ts";
import { type AgentContext, AgentUpstream, inUsersName, unansweredError } from "./agent-upstream.ts";

export interface AgentLegOptions {
  /** The API server and its user's credentials. */
  readonly kubeconfig: Kubeconfig;
  readonly tls: Pick<ServingTls, "cert" | "key">;
  /** The token that every request must carry. */
  readonly token: string;
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** The clock for what is known about the API server; by default the session clock. */
  readonly memoryClock?: { now(): number } | undefined;
  readonly logger: Logger;
  /** Notified of every request to the API server. */
  readonly trace?: ConnectTrace | undefined;
  /** Receives the reasons for the paths that sessions take, for the user. */
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

/**
 * Creates the agent's listener, not yet listening. A client with the agent's token acts as the
 * kubeconfig's user.
 */
function createAgentServer(agent: AgentContext, options: ListenerOptions): Listener {
  return createListener(
    agent,
    {
      async handleRequest(incoming, downstream) {
        await requireToken(incoming, agent);
        await forwardRequest(incoming, downstream, agent);
      },
      async handleUpgrade(incoming, client) {
        const user = await requireToken(incoming, agent);
        const path = matchStreamingPath(incoming.url.pathname);
        if (path === undefined) return await forwardOtherUpgrade(incoming, client, agent);
        await runSession(agentLeg(path, user, agent), incoming, client, agent);
      },
      refuse: (downstream, refusal) => writeStatus(downstream, refusal.status),
      refuseUpgrade,
      attributesOf: (user, { method, url }) =>
        requestAttributes(user, { method, path: url.pathname, query: url.searchParams }),
      isLongRunning: ({ pathname }) => matchStreamingPath(pathname) !== undefined,
    },
    options,
  );
}

/** Throws StatusError 401. */
async function requireToken(incoming: IncomingStreaming, agent: AgentContext): Promise<UserInfo> {
  const user = await agent.authenticator.authenticate(incoming);
  if (user !== undefined) return user;
  agent.note(`refused: ${incoming.method} without the agent's token from ${incoming.remoteAddress}`);
  throw WIRE_ERRORS.unauthenticated.streaming();
}

/**
 * Forwards a request that is not an upgrade. Bodies, watches and followed logs stream in both
 * directions.
 */
async function forwardRequest(
  { method, target }: IncomingStreaming,
  downstream: HttpDownstream,
  { upstream, clock, timeouts }: AgentContext,
): Promise<void> {
  const credentials = await upstream.credentials();
  const path = upstream.pathOf(target);
  const startedMs = clock.now();
  await forwardExchange(downstream, {
    upstream: upstream.http,
    path,
    ...exchangeTimesOf(target, timeouts),
    editHeaders: (edit) => {
      const lines = inUsersName(edit.lines(), { credentials, authority: upstream.authority });
      upstream.trace.request?.(method, upstream.origin + path, lines);
      return new HeaderEdit(lines);
    },
    editResponseHeaders: (edit, status) => {
      upstream.trace.response?.(status, STATUS_CODES[status] ?? "", edit.lines(), clock.now() - startedMs);
      // The client gets this 401; its next request uses credentials that are read again.
      if (status === 401) upstream.forgetCredentials();
    },
    respondError: (error) => writeStatus(downstream, forwardingError(error).status),
  });
}

/** Forwards any other upgrade unchanged, for example to a pod's or a service's own server. */
async function forwardOtherUpgrade(
  incoming: IncomingStreaming,
  client: PendingClient,
  agent: AgentContext,
): Promise<void> {
  const { upstream, timeouts, limits } = agent;
  const credentials = await upstream.credentials();
  const path = upstream.pathOf(incoming.target);
  const giveBack = agent.sessions.admit();
  let isCarried = false;
  try {
    await forwardUpgrade(client, {
      endpoint: upstream.endpoint,
      connect: (options) => upstream.connect(upstream.endpoint, options),
      method: incoming.method,
      path,
      headers: incoming.headers,
      editHeaders: (edit) => {
        const lines = inUsersName(edit.lines(), { credentials, authority: upstream.authority });
        upstream.trace.request?.(incoming.method, upstream.origin + path, lines);
        return new HeaderEdit(lines);
      },
      dialTimeoutMs: timeouts.dialMs,
      responseHeaderTimeoutMs: timeouts.upgradeResponseMs,
      maxResponseHeadBytes: limits.maxUpgradeResponseHeadBytes,
      // As on the API-server leg: an API server may ignore an upgrade.
      relayAnswersMs: isHttp2Stream(client.socket) ? undefined : timeouts.streamIdleMs,
      carry: (downstream, answered) => {
        isCarried = true;
        carryForwarded(downstream, answered, agent, { onOver: giveBack });
      },
    });
  } catch (error) {
    throw unansweredError(error);
  } finally {
    if (!isCarried) giveBack();
  }
}
