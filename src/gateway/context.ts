import type { Authenticator } from "../access/authn/authenticator.ts";
import type { Authorizer } from "../access/authz/authorizer.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { FeatureGates } from "../config/feature-gates.ts";
import type { Limits } from "../config/limits.ts";
import type { Timeouts } from "../config/timeouts.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { SessionClock } from "../streaming/session-clock.ts";
import type { UpstreamEndpoint } from "../upstream/dial.ts";
import type { Sessions } from "./sessions.ts";

/** All that a request's steps need, put together once by app.ts. */
export interface GatewayContext {
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  readonly cluster: Cluster;
  readonly gates: FeatureGates;
  readonly limits: Limits;
  readonly timeouts: Timeouts;
  readonly kubelet: KubeletOptions;
  readonly clock: SessionClock;
  readonly sessions: Sessions;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

export interface KubeletOptions {
  readonly preferredAddressTypes: readonly string[];
  readonly defaultKubeletPort: number;
  /** Where to dial a node whose address and port are known: adds the TLS that kubelets are spoken to with. */
  endpointOf(host: string, port: number): UpstreamEndpoint;
}
