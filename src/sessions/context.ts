import type { Socket } from "node:net";
import type { AuditLog } from "../access/audit/audit-log.ts";
import type { Authenticator } from "../access/authn/authenticator.ts";
import type { Impersonation } from "../access/authn/impersonation.ts";
import type { Authorizer } from "../access/authz/authorizer.ts";
import type { Quotas } from "../access/policy/component.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { NodeEndpoint } from "../cluster/locate.ts";
import type { FeatureGates } from "../config/feature-gates.ts";
import type { Limits } from "../config/sections/limits.ts";
import type { PolicyRule } from "../config/sections/policy.ts";
import type { Timeouts } from "../config/sections/timeouts.ts";
import type { Bandwidth } from "../net/bandwidth.ts";
import type { DialOptions, UpstreamEndpoint } from "../net/dial.ts";
import type { SessionClock } from "../net/session-clock.ts";
import type { SpareConnections } from "../net/spare-connections.ts";
import type { KnownNodes } from "../nodes/known-nodes.ts";
import type { Logger } from "../observability/logger.ts";
import type { ListenerMetrics } from "../observability/metrics.ts";
import type { Tracing } from "../observability/trace.ts";
import type { OwnerConnection } from "./resumable/owner-connection.ts";
import type { ResumableSessions } from "./resumable/resumable-sessions.ts";
import type { Sessions } from "./sessions.ts";

/** All that a request's steps need, put together once by app.ts. */
export interface GatewayContext {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly impersonation: Impersonation;
  /** Absent: every authorized user may stream. */
  readonly policy?: GatewayPolicy | undefined;
  /** Absent: nothing is recorded. */
  readonly audit?: AuditLog | undefined;
  readonly cluster: Cluster;
  /**
   * Reads a pod and its node, which no watch has brought yet, into the cluster; undefined where
   * nothing is missing. Rejects with StatusError. Absent: the cluster knows everything.
   */
  readonly lookUp?: ((namespace: string, pod: string) => Promise<void> | undefined) | undefined;
  readonly gates: FeatureGates;
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly kubelet: KubeletOptions;
  /** What nodes were seen to do. */
  readonly nodes: KnownNodes;
  readonly clock: SessionClock;
  /** Absent: sessions are as fast as both of their sides. */
  readonly bandwidth?: Bandwidth | undefined;
  readonly sessions: Sessions;
  /** Absent: no session outlives its connection. */
  readonly resumable?: ResumableSessions | undefined;
  /** Absent: this gateway is the only replica. */
  readonly peers?: SessionPeers | undefined;
  readonly metrics: ListenerMetrics;
  readonly logger: Logger;
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
}

/** The other replicas of the gateway, as far as sessions are concerned. */
export interface SessionPeers {
  /** The connection to the replica of that id, which owns a session; undefined: too many are relayed already. */
  startRelay(replica: string): OwnerRelay | undefined;
}

/** The way to another replica, and a place among those that are relayed: until the connection closes, or `end`. */
export interface OwnerRelay extends OwnerConnection {
  end(): void;
}

/** What runs a session that was admitted, on every leg. */
export type SessionRunContext = Pick<
  GatewayContext,
  "bandwidth" | "clock" | "limits" | "logger" | "metrics" | "policy" | "resumable" | "sessions" | "timeouts"
>;

/** The configured rules, and the counts that its limits are about. */
export interface GatewayPolicy {
  /** Replaced when the configuration is read again; a session keeps what it was let in by. */
  rules: readonly PolicyRule[];
  readonly quotas: Quotas;
}

export interface KubeletOptions {
  readonly preferredAddressTypes: readonly string[];
  readonly defaultKubeletPort: number;
  /**
   * Where to dial a node: its checked address and port, and the TLS for kubelets. Rejects when the
   * address is refused or cannot be found.
   */
  endpointOf(node: NodeEndpoint): UpstreamEndpoint | Promise<UpstreamEndpoint>;
  /** How it is dialled, where that is not directly; as `dial`. */
  readonly connect?: ((endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>) | undefined;
  /** The same for sessions, from spare connections; `onSpare` is called where it gives one of those. */
  readonly connectSession?: SpareConnections["connect"];
}
