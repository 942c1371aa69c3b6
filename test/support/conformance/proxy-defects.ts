import type { ProxyDefect } from "./broken-proxy.ts";
import { bodyDefects, handshakeDefects, requestDefects } from "./defects-of-heads.ts";
import { spdyDefects, streamDefects, timeDefects } from "./defects-of-streams.ts";

/** What proxies were found to do wrong with Kubernetes' streams, each as a defect that can be injected. */
export const PROXY_DEFECTS: readonly ProxyDefect[] = [
  ...handshakeDefects,
  ...requestDefects,
  ...bodyDefects,
  ...streamDefects,
  ...spdyDefects,
  ...timeDefects,
];
