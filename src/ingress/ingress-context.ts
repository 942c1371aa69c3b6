import type { Limits } from "../config/sections/limits.ts";
import type { SlowBodies } from "../http/slow-bodies.ts";
import type { EdgeRules } from "../listeners/edge-rules.ts";
import type { Listener } from "../listeners/listener.ts";
import type { PlainRequests } from "../listeners/plain-requests.ts";
import type { ProxyHeaderRefusal } from "../listeners/proxy-protocol.ts";
import type { FairQueue } from "../net/fair-queue.ts";
import type { IngressMetrics } from "../observability/ingress-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import type { Tracing } from "../observability/trace.ts";
import type { ForwardingContext } from "../sessions/carry-forwarded.ts";
import type { AccessLog } from "./access-log.ts";
import type { EndpointUpstream } from "./endpoint-upstream.ts";
import type { RouteBackend } from "./route-backend.ts";
import type { RouteProblems } from "./route-problems.ts";
import type { RouteTable } from "./route-table.ts";
import type { ServiceBalancer } from "./service-balancer.ts";

/** What requests of an Ingress need, put together once. */
export interface IngressContext extends ForwardingContext {
  /** The table in force. Another one may be there for the next request. */
  routes(): RouteTable<RouteBackend>;
  readonly balancer: ServiceBalancer;
  /** What requests show of their routes. */
  readonly problems: RouteProblems;
  /** The gateways that a `StreamingGateway` backend may name. */
  readonly streamingGateways: ReadonlyMap<string, StreamingGateway>;
  /** False for one that was probed and found dead. */
  isGatewayHealthy(name: string): boolean;
  readonly edge: EdgeRules;
  /** Those that are being answered, but not by a gateway's own API leg. */
  readonly requests: PlainRequests;
  /** Those of them that addresses hold, each a share. */
  readonly seats: FairQueue;
  /** Those whose bodies do not come, beside the seats. */
  readonly slowBodies: SlowBodies;
  readonly limits: Limits;
  readonly metrics: IngressMetrics;
  /** Undefined: none is written. */
  readonly accessLog: AccessLog | undefined;
  /** Undefined: nothing is traced. */
  readonly tracing?: Tracing | undefined;
  /** A connection was refused: its address has too many, or for its PROXY protocol header. */
  onConnectionRefused(reason: "too-many-of-address" | ProxyHeaderRefusal): void;
  readonly logger: Logger;
}

/** Where streaming requests of a path prefix go: another API server's address, or this gateway's own API leg. */
export type StreamingGateway =
  | { readonly type: "upstream"; readonly upstream: EndpointUpstream }
  | LocalGateway;

export interface LocalGateway {
  readonly type: "local";
  /** Takes requests whose targets are its own already. */
  readonly listener: Pick<Listener, "answerRequest" | "answerUpgrade">;
}
