import { checkNetwork } from "./address-list.ts";
import { type EgressProxySettings, readEgressProxy } from "./egress-proxy.ts";
import {
  type NodeCircuit,
  type NodeStreaming,
  readNodeCircuit,
  readNodeStreaming,
} from "./node-streaming.ts";
import { notAmong, type Section } from "./section.ts";
import { readUpstreamTrust, type UpstreamTrust } from "./upstream-trust.ts";

export const NODE_ADDRESS_TYPES = [
  "Hostname",
  "InternalDNS",
  "InternalIP",
  "ExternalDNS",
  "ExternalIP",
] as const;
export type NodeAddressType = (typeof NODE_ADDRESS_TYPES)[number];

/** How kubelets are reached. */
export interface KubeletConnection extends UpstreamTrust {
  /** Kubelets serve https; http is for fake nodes and local hops. */
  readonly scheme: "https" | "http";
  /** For nodes that do not publish their own in status.daemonEndpoints. */
  readonly port: number;
  /** The first type that a node has an address of is dialled. */
  readonly preferredAddressTypes: readonly NodeAddressType[];
  /** Networks that nodes may have although they are loopback, link-local or otherwise no place of a node. */
  readonly allowedAddresses: readonly string[];
  /** Nodes may have address and port of an API server: the real one's, or those of our own listeners. */
  readonly allowAPIServerEndpoints: boolean;
  /** Which requests pass through to which nodes as the client speaks them. */
  readonly streaming: NodeStreaming;
  /** When a node that does not answer is no longer dialled. */
  readonly circuitBreaker: NodeCircuit;
  /** Absent: nodes are dialled directly. */
  readonly egressProxy: EgressProxySettings | undefined;
  /** The certificate must be that of `system:node:<name>`, so that no node can stand in for another. */
  readonly verifyNodeName: boolean;
}

/** kube-apiserver's --kubelet-preferred-address-types. */
export const defaultPreferredAddressTypes: readonly NodeAddressType[] = NODE_ADDRESS_TYPES;
const DEFAULT_KUBELET_PORT = 10_250;

export function readKubelet(section: Section): KubeletConnection {
  const kubelet = {
    scheme: section.choice("scheme", "https", ["https", "http"]),
    port: section.count("port", DEFAULT_KUBELET_PORT, { min: 1, max: 65_535 }),
    preferredAddressTypes: section.choices(
      "preferredAddressTypes",
      defaultPreferredAddressTypes,
      NODE_ADDRESS_TYPES,
    ),
    // Without an authority kube-apiserver verifies no kubelet: their certificates are self-signed by default.
    ...readUpstreamTrust(section, true),
    allowedAddresses: section.strings("allowedAddresses", [], checkNetwork),
    allowAPIServerEndpoints: section.boolean("allowAPIServerEndpoints", false),
    streaming: readNodeStreaming(section.section("streaming")),
    circuitBreaker: readNodeCircuit(section.section("circuitBreaker")),
    egressProxy: section.has("egressProxy") ? readEgressProxy(section.section("egressProxy")) : undefined,
    verifyNodeName: section.boolean("verifyNodeName", false),
  };
  if (kubelet.verifyNodeName && (kubelet.scheme === "http" || kubelet.insecureSkipTLSVerify)) {
    section.problem("verifyNodeName", "needs scheme https and certificateAuthorityFile");
  }
  section.finish();
  return kubelet;
}

export function checkNodeAddressType(type: string): string | undefined {
  return notAmong(type, NODE_ADDRESS_TYPES);
}

export function isNodeAddressType(type: string): type is NodeAddressType {
  return checkNodeAddressType(type) === undefined;
}
