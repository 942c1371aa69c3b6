import type { ProxyDefect } from "./broken-proxy.ts";
import { bodyDefects, handshakeDefects, requestDefects } from "./defects-of-heads.ts";
import { spdyDefects, streamDefects, timeDefects } from "./defects-of-streams.ts";

/** Defects that real proxies show with Kubernetes' streams, each of which can be injected. */
export const PROXY_DEFECTS: readonly ProxyDefect[] = [
  ...handshakeDefects,
  ...requestDefects,
  ...bodyDefects,
  ...streamDefects,
  ...spdyDefects,
  ...timeDefects,
];
