export { beginsProxyHeader, decodeProxyHeader } from "./decode-header.ts";
export { MAX_PROXY_HEADER_BYTES, MAX_PROXY_LINE_BYTES } from "./limits.ts";
export type { ProxyHeader, ProxyPeer } from "./proxy-header.ts";
