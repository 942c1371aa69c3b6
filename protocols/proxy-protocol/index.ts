export type { ProxyHeader, ProxyPeer } from "./decode-header.ts";
export { beginsProxyHeader, decodeProxyHeader } from "./decode-header.ts";
