import { createAdminServer } from "../admin/admin-server.ts";
import { AgentKubeconfig, type KubeconfigPlace } from "../legs/agent/agent-kubeconfig.ts";
import { type AgentLegOptions, buildAgentLeg } from "../legs/agent/component.ts";
import { Supervisor } from "../lifecycle/supervisor.ts";
import { startListener } from "../listeners/component.ts";
import { type ListenAddress, listenAt, urlOf } from "../net/listen.ts";
import { Metrics } from "../observability/metrics.ts";
import { observeFaults } from "./uncaught-exceptions.ts";

interface AgentOptions extends AgentLegOptions {
  /** Where local clients connect, on loopback. */
  readonly listen: ListenAddress;
  /** Serves health, sessions and metrics; absent: no admin listener. */
  readonly admin?: ListenAddress | undefined;
  /** Which kubeconfig to write for local clients; absent: none. */
  readonly place?: KubeconfigPlace | undefined;
}

interface RunningAgent {
  readonly url: string;
  readonly adminUrl: string | undefined;
  /** The path of the written kubeconfig. */
  readonly kubeconfigFile: string | undefined;
  readonly metrics: Metrics;
  /** Stops listening, and ends each session with a truthful status. */
  shutDown(): Promise<void>;
}

/**
 * Starts the agent from its components. Rejects, and leaves nothing running, if it cannot listen or
 * cannot write the kubeconfig (KubeconfigTakenError).
 */
export async function startAgent(
  options: AgentOptions,
  app: Supervisor = new Supervisor(options.logger),
): Promise<RunningAgent> {
  const { logger, listen, admin, place, kubeconfig: credentials, token, tls } = options;
  const metrics = new Metrics();

  app.add("faults", () => ({ stop: observeFaults(logger, metrics) }));
  const leg = app.add("agent leg", () => buildAgentLeg(options, metrics));
  const agentListener = app.add("agent listener", () =>
    startListener(leg.started.listener.server, (server) => listenAt(server, listen)),
  );
  const adminListener =
    admin &&
    app.add("admin listener", () =>
      startListener(
        createAdminServer({
          metrics,
          limits: leg.started.context.limits,
          readinessChecks: {},
          listSessions: () => ({ sessions: leg.started.context.sessions.list(), partial: [] }),
          logger,
        }),
        (server) => listenAt(server, admin),
      ),
    );
  const kubeconfig =
    place &&
    app.add("kubeconfig", async () => {
      const server = urlOf("https", agentListener.started.at);
      const { namespace } = credentials;
      const written = await AgentKubeconfig.write(place, { server, authority: tls.cert, token, namespace });
      // Removed before sessions end: a second signal ends the process at once.
      return { file: written.file, drain: () => written.remove(), stop: () => written.remove() };
    });

  await app.start();

  return {
    url: urlOf("https", agentListener.started.at),
    adminUrl: adminListener && urlOf("http", adminListener.started.at),
    kubeconfigFile: kubeconfig?.started.file,
    metrics,
    shutDown: async () => {
      await app.shutDown(leg.started.context.timeouts.shutdownGracePeriodMs);
    },
  };
}
