export { beginsProxyHeader, decodeProxyHeader } from "./decode-header.ts";
export type { ProxyHeader, ProxyPeer } from "./proxy-header.ts";
export { MAX_PROXY_HEADER_BYTES, MAX_PROXY_LINE_BYTES } from "./proxy-header.ts";
