import type { Socket } from "node:net";
import type { DialOptions, UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { Tracing } from "@sluice/client/internal/observability/trace";
import type { AuditLog } from "../access/audit/audit-log.ts";
import type { Authenticator } from "../access/authn/authenticator.ts";
import type { Impersonation } from "../access/authn/impersonation.ts";
import type { Authorizer } from "../access/authz/authorizer.ts";
import type { Quotas } from "../access/policy/component.ts";
import type { WantedSession } from "../access/policy/evaluate-policy.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { NodeEndpoint } from "../cluster/locate.ts";
import type { FeatureGates } from "../config/feature-gates.ts";
import type { Limits } from "../config/sections/limits.ts";
import type { PolicyRule } from "../config/sections/policy.ts";
import type { Timeouts } from "../config/sections/timeouts.ts";
import type { Bandwidth } from "../net/bandwidth.ts";
import type { SpareConnections } from "../net/spare-connections.ts";
import type { KnownNodes } from "../nodes/known-nodes.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { SeparateForwards } from "./carriers/forwards/separate-forwards.ts";
import type { Admission } from "./leg.ts";
import type { SessionObserver } from "./observers/session-observer.ts";
import type { Reauthorizer } from "./reauthorizer.ts";
import type { ResumableSessions } from "./resumable/resumable-sessions.ts";
import type { OwnerConnection } from "./resumable/session-owner.ts";
import type { SessionInfo } from "./session-info.ts";
import type { Sessions } from "./sessions.ts";

/** The metrics that a listener's sessions report to. */
type ListenerMetrics = Pick<
  Metrics,
  | "streamingRouted"
  | "streamingStarted"
  | "streamingRefused"
  | "upgradeFailed"
  | "streamingEnded"
  | "access"
  | "nodes"
>;

/** Identifies the user of a request, and decides what it may do. */
export interface AccessContext {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly impersonation: Impersonation;
}

/** Finds the node of a pod, and the way to it. */
export interface ClusterContext {
  readonly cluster: Cluster;
  /**
   * Loads a pod and its node that no watch has delivered yet; undefined if the cluster knows both.
   * Rejects with StatusError. Absent: the cluster knows everything.
   */
  readonly lookUp?: ((namespace: string, pod: string) => Promise<void> | undefined) | undefined;
  readonly gates: FeatureGates;
  readonly kubelet: KubeletOptions;
  /** Observed behaviour of nodes. */
  readonly nodes: KnownNodes;
}

/** Runs an admitted session, on every leg. */
export interface SessionRunContext {
  readonly clock: SessionClock;
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly logger: Logger;
  readonly metrics: ListenerMetrics;
  readonly sessions: Sessions;
  /** Absent: every authorized user may stream. */
  readonly policy?: GatewayPolicy | undefined;
  /** Absent: no bandwidth limit. */
  readonly bandwidth?: Bandwidth | undefined;
  /** Absent: running sessions are not authorized again. */
  readonly reauthorizer?: Pick<Reauthorizer, "follow"> | undefined;
  /**
   * Carries port-forwards in which each connection has its own connection to the node. Absent: they
   * share one.
   */
  readonly separateForwards?: typeof SeparateForwards | undefined;
  /**
   * Awaited before each dial; gives the session further observers, or refuses it by StatusError. Its plan
   * may still change.
   */
  readonly beforeDial?: BeforeDial | undefined;
}

/** Runs a session that may be resumed: it is kept when its connection breaks. */
export interface ResumableRunContext extends SessionRunContext {
  /** Absent: no session outlives its connection. */
  readonly resumable?: ResumableSessions | undefined;
  /** Absent: this gateway is the only replica. */
  readonly peers?: SessionPeers | undefined;
}

/**
 * The gateway's parts, which app.ts builds once. Each step of a request asks for one of the
 * contracts that this extends.
 */
export interface GatewayContext extends AccessContext, ClusterContext, ResumableRunContext {
  /** Absent: nothing is recorded. */
  readonly audit?: AuditLog | undefined;
  /** Absent: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** Absent: no session is recorded. */
  readonly recordingRules?: RecordingRules | undefined;
}

/**
 * Tells which sessions must be recorded, so that those whose bytes are not decoded can be refused.
 */
export interface RecordingRules {
  /** True if any rule records sessions. */
  readonly recordAny: boolean;
  /** The name of the rule that records this session. */
  nameFor(session: Omit<WantedSession, "ports" | "reason">): string | undefined;
}

export type BeforeDial = (
  session: Pick<Admission, "user" | "request" | "policy" | "plan"> & {
    readonly info: SessionInfo;
    /**
     * Annotates the request's audit events that are not written yet, even after the session has
     * begun.
     */
    annotate(name: string, value: string): void;
    /** Writes an audit event of the running session, with the annotations so far. */
    recordAudit(): void;
  },
  signal: AbortSignal,
) => Promise<readonly SessionObserver[]>;

/** The gateway's other replicas, as sessions use them. */
export interface SessionPeers {
  /**
   * Starts a relay to the replica with this id, which owns a session; undefined: too many relays are
   * open.
   */
  startRelay(replica: string): OwnerRelay | undefined;
}

/** A relay's connection to another replica. It counts against the limit until it closes, or until `end`. */
export interface OwnerRelay extends OwnerConnection {
  end(): void;
}

/** The configured rules, and the counters for their limits. */
interface GatewayPolicy {
  /** Replaced on reload. A session keeps the rule that admitted it. */
  rules: readonly PolicyRule[];
  readonly quotas: Quotas;
}

export interface KubeletOptions {
  readonly preferredAddressTypes: readonly string[];
  readonly defaultKubeletPort: number;
  /**
   * The endpoint of a node: its checked address and port, with the TLS for kubelets. Rejects if the
   * address is forbidden or cannot be resolved.
   */
  endpointOf(node: NodeEndpoint): UpstreamEndpoint | Promise<UpstreamEndpoint>;
  /** Dials through an egress proxy, with `dial`'s signature. Absent: nodes are dialled directly. */
  readonly connect?: ((endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>) | undefined;
  /** Connects sessions, from spare connections if there is one; then it calls `onSpare` first. */
  readonly connectSession?: SpareConnections["connect"];
}
