import type { Tracing } from "@sluice/client/internal/observability/trace";
import type { Limits } from "../config/sections/limits.ts";
import type { SlowBodies } from "../http/slow-bodies.ts";
import type { EdgeRules } from "../listeners/edge-rules.ts";
import type { Listener } from "../listeners/listener.ts";
import type { PlainRequests } from "../listeners/plain-requests.ts";
import type { ProxyHeaderRefusal } from "../listeners/proxy-protocol.ts";
import type { FairQueue } from "../net/fair-queue.ts";
import type { IngressMetrics } from "../observability/ingress-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import type { ForwardingContext } from "../sessions/carry-forwarded.ts";
import type { AccessLog } from "./access-log.ts";
import type { EndpointUpstream } from "./endpoint-upstream.ts";
import type { Route } from "./route.ts";
import type { RouteProblems } from "./route-problems.ts";
import type { RouteTable } from "./route-table.ts";
import type { ServiceBalancer } from "./service-balancer.ts";

/** Shared by all requests of the front door. */
export interface IngressContext extends ForwardingContext {
  /** The current table; the next request may see another one. */
  routes(): RouteTable<Route>;
  readonly balancer: ServiceBalancer;
  /** Problems that only requests reveal. */
  readonly problems: RouteProblems;
  /** Gateways that a `StreamingGateway` backend may name. */
  readonly streamingGateways: ReadonlyMap<string, StreamingGateway>;
  /** False if the gateway's health checks fail. */
  isGatewayHealthy(name: string): boolean;
  readonly edge: EdgeRules;
  /** Requests in progress, without those of a gateway's own API leg. */
  readonly requests: PlainRequests;
  /** Client addresses share the places for requests in progress. */
  readonly seats: FairQueue;
  /** Requests whose bodies do not arrive; they hold no seat. */
  readonly slowBodies: SlowBodies;
  readonly limits: Limits;
  readonly metrics: IngressMetrics;
  /** Undefined if no access log is configured. */
  readonly accessLog: AccessLog | undefined;
  /** Undefined if tracing is off. */
  readonly tracing?: Tracing | undefined;
  /** A connection was refused: its address has too many, or its PROXY protocol header is wrong. */
  onConnectionRefused(reason: "too-many-of-address" | ProxyHeaderRefusal): void;
  readonly logger: Logger;
}

/** Serves a path prefix's streaming requests: another API server, or this gateway's own API leg. */
export type StreamingGateway =
  | { readonly type: "upstream"; readonly upstream: EndpointUpstream }
  | LocalGateway;

export interface LocalGateway {
  readonly type: "local";
  /** Requests reach it with the listener's own targets. */
  readonly listener: Pick<Listener, "answerRequest" | "answerUpgrade">;
}
