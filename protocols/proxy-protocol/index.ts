export type { ProxyHeader, ProxyPeer } from "./decode-header.ts";
export {
  beginsProxyHeader,
  decodeProxyHeader,
  MAX_PROXY_HEADER_BYTES,
  MAX_PROXY_LINE_BYTES,
} from "./decode-header.ts";
