import type { CriRuntime } from "../../cri/cri-runtime.ts";
import type { ServingContext } from "../../listeners/listener-context.ts";
import type { UpstreamTls } from "../../net/tls.ts";
import type { KubeletCounters } from "../../observability/kubelet-counters.ts";
import type { KubeletUpstream } from "./kubelet-upstream.ts";

/** All that the kubelet listener's steps need. */
export interface NodeContext {
  /** With the listener's own authenticator, authorizer, sessions and metrics. */
  readonly gateway: ServingContext;
  readonly runtime: CriRuntime;
  /** The name that permissions are asked for, and under which the node's sessions are shown. */
  readonly nodeName: string;
  /** For runtimes whose streaming server speaks TLS. */
  readonly streamingTls: UpstreamTls;
  /** A GET upgrade needs `create` on nodes/proxy too. */
  readonly requiresCreateForUpgrades: boolean;
  readonly counters: KubeletCounters;
  /** The node's kubelet, which answers what is not served here; undefined: the runtime answers what it can. */
  readonly upstream: KubeletUpstream | undefined;
}
