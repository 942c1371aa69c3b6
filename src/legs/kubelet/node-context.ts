import type { UpstreamTls } from "@sluice/client/internal/net/tls";
import type { CriRuntime } from "../../cri/cri-runtime.ts";
import type { ServingContext } from "../../listeners/listener-context.ts";
import type { KubeletCounters } from "../../observability/kubelet-counters.ts";
import type { KubeletUpstream } from "./kubelet-upstream.ts";

/** Everything the kubelet listener's request handling needs. */
export interface NodeContext {
  /** With the listener's own authenticator, authorizer, sessions and metrics. */
  readonly gateway: ServingContext;
  readonly runtime: CriRuntime;
  /** Permissions and session lists use this node name. */
  readonly nodeName: string;
  /** TLS settings for runtimes with a TLS streaming server. */
  readonly streamingTls: UpstreamTls;
  /** Whether a GET upgrade also needs `create` on nodes/proxy. */
  readonly requiresCreateForUpgrades: boolean;
  readonly counters: KubeletCounters;
  /**
   * The node's kubelet, which answers requests that Sluice does not; undefined: the runtime answers
   * what it can.
   */
  readonly upstream: KubeletUpstream | undefined;
}
