import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { unknownPath } from "../../packages/client/src/api/status.ts";
import { SessionClock } from "../../packages/client/src/net/session-clock.ts";
import { Impersonation } from "../../src/access/authn/impersonation.ts";
import { type Authorizer, alwaysAllow } from "../../src/access/authz/authorizer.ts";
import { SessionQuotas } from "../../src/access/policy/component.ts";
import type { UserInfo } from "../../src/access/user-info.ts";
import { ClusterStore } from "../../src/cluster/cluster-store.ts";
import {
  CONFIGURATION_KIND,
  defaultConfiguration,
  parseConfiguration,
} from "../../src/config/configuration.ts";
import { FeatureGates } from "../../src/config/feature-gates.ts";
import type { SessionAuthorization } from "../../src/config/sections/authorization.ts";
import type { NodeStreaming } from "../../src/config/sections/kubelet.ts";
import type { Limits } from "../../src/config/sections/limits.ts";
import type { Timeouts } from "../../src/config/sections/timeouts.ts";
import { createApiServer } from "../../src/legs/api-server/api-server.ts";
import { EdgeRules, type ServingContext } from "../../src/listeners/edge-rules.ts";
import { Bandwidth } from "../../src/net/bandwidth.ts";
import { KnownNodes } from "../../src/nodes/known-nodes.ts";
import { createLogger } from "../../src/observability/logger.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { Reauthorizer } from "../../src/sessions/reauthorizer.ts";
import { Sessions } from "../../src/sessions/sessions.ts";
import { defaultEdge, defaultLimits, defaultTimeouts } from "./default-configuration.ts";
import { defaultLocateOptions } from "./locate-options.ts";
import { issueCertificate } from "./test-certificates.ts";

export interface HarnessOptions {
  readonly kubeletPort: number;
  readonly kubeletHost?: string;
  readonly declaredFeatures?: readonly string[];
  readonly limits?: Partial<Limits>;
  readonly timeouts?: Partial<Timeouts>;
  readonly gates?: Readonly<Record<string, boolean>>;
  readonly clock?: SessionClock;
  /** The configuration's `policy` section. */
  readonly policy?: object;
  readonly streaming?: NodeStreaming;
  /** The clock of learned capabilities; by default the session clock. */
  readonly nodeClock?: { now(): number };
  readonly beforeDial?: ServingContext["beforeDial"];
  /** Properties of every request's user. */
  readonly user?: Partial<UserInfo>;
  /** Absent: every user may do everything. */
  readonly authorizer?: Authorizer;
  /** Absent: running sessions are not authorized again. */
  readonly sessions?: Omit<SessionAuthorization, "portForward" | "currentScreen">;
  readonly separateForwards?: ServingContext["separateForwards"];
  /** Serves TLS, with HTTP/2 for clients that want it. */
  readonly isHttp2?: boolean;
}

export interface GatewayHarness {
  /** `127.0.0.1:port`. */
  readonly authority: string;
  readonly context: ServingContext;
  readonly logLines: string[];
  metric(name: string): Promise<string[]>;
  close(): Promise<void>;
}

/**
 * A gateway over plain HTTP with one node `node` and one pod `default/web` (container `main`).
 * Everything is allowed.
 */
export async function startGatewayHarness(options: HarnessOptions): Promise<GatewayHarness> {
  const logLines: string[] = [];
  const logger = createLogger({ level: "debug", destination: { write: (line) => void logLines.push(line) } });
  const store = new ClusterStore();
  store.replaceAll(objects(options), new Date(0));
  const limits = { ...defaultLimits, ...options.limits };
  const metrics = new Metrics({ withProcessMetrics: false });
  const clock = options.clock ?? new SessionClock();
  const timeouts = { ...defaultTimeouts, ...options.timeouts };
  const { kubelet } = defaultConfiguration();
  const context: ServingContext = {
    authenticator: {
      authenticate: async () => ({ name: "tester", uid: "", groups: [], extra: {}, ...options.user }),
    },
    authorizer: options.authorizer ?? alwaysAllow,
    impersonation: new Impersonation(options.authorizer ?? alwaysAllow, true),
    policy: policyOf(options.policy ?? {}),
    cluster: store,
    edge: new EdgeRules(defaultEdge),
    gates: FeatureGates.parse(options.gates ?? {}),
    limits,
    timeouts,
    kubelet: { ...defaultLocateOptions, endpointOf: ({ host, port }) => ({ host, port }) },
    bandwidth:
      limits.maxConnectionBytesPerSecond === 0
        ? undefined
        : new Bandwidth(limits.maxConnectionBytesPerSecond),
    nodes: new KnownNodes({
      streaming: options.streaming ?? kubelet.streaming,
      circuit: kubelet.circuitBreaker,
      maxNodes: limits.maxRememberedNodes,
      forgetAfterMs: timeouts.nodeMemoryMs,
      clock: options.nodeClock ?? clock,
      metrics: metrics.nodes,
      logger,
    }),
    clock,
    beforeDial: options.beforeDial,
    separateForwards: options.separateForwards,
    reauthorizer:
      options.sessions &&
      new Reauthorizer({
        settings: options.sessions,
        clock,
        onResult: (result) => metrics.access.reauthorized(result),
      }),
    sessions: new Sessions(limits.maxConcurrentSessions),
    metrics,
    logger,
  };
  const none = async (): Promise<never> => {
    throw unknownPath();
  };
  const { cert, key } =
    options.isHttp2 === true ? await issueCertificate({ commonName: "gateway" }) : { cert: "", key: "" };
  const tls = { tls: { cert, key, clientAuthorities: [] }, http2: true };
  const listening = options.isHttp2 === true ? tls : {};
  const { server } = createApiServer(context, { handleRequest: none, handleUpgrade: none }, listening);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    authority: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    context,
    logLines,
    metric: async (name) => (await metrics.expose()).split("\n").filter((line) => line.startsWith(name)),
    close: () => closeServer(server),
  };
}

function policyOf(section: object) {
  const configuration = { apiVersion: "sluice.dev/v1alpha1", kind: CONFIGURATION_KIND, policy: section };
  const { policy } = parseConfiguration(JSON.stringify(configuration), "harness.json");
  return { rules: policy.rules, quotas: new SessionQuotas(policy.limits) };
}

function objects({ kubeletHost = "127.0.0.1", kubeletPort, declaredFeatures = [] }: HarnessOptions) {
  return [
    {
      apiVersion: "v1" as const,
      kind: "Node" as const,
      metadata: { name: "node" },
      status: {
        addresses: kubeletHost === "" ? [] : [{ type: "InternalIP", address: kubeletHost }],
        daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
        declaredFeatures: [...declaredFeatures],
      },
    },
    {
      apiVersion: "v1" as const,
      kind: "Pod" as const,
      metadata: { name: "web", namespace: "default", uid: "u1" },
      spec: { nodeName: "node", containers: [{ name: "main", image: "x" }] },
    },
  ];
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
