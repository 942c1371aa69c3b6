import { checkNetwork } from "@sluice/client/internal/config/address-list";
import { checked, shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, implied } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";
import { choices, strings } from "../list-fields.ts";
import { count } from "../number-fields.ts";
import { optionalSection, section } from "../section-fields.ts";
import { egressProxy } from "./egress-proxy.ts";
import { nodeCircuit, nodeStreaming } from "./node-streaming.ts";

const AUTHORITY_FLAG = "kubelet-certificate-authority";
const CERTIFICATE_FLAG = "kubelet-client-certificate";
const KEY_FLAG = "kubelet-client-key";

const fields = table({
  scheme: choice("Kubelets serve https; http is for fake nodes and local hops.", ["https", "http"], {
    default: "https",
  }),
  port: count("The port of nodes that publish none in status.daemonEndpoints.", {
    default: 10_250,
    from: 1,
    to: 65_535,
  }),
  preferredAddressTypes: choices(
    "The first type that a node has an address of is dialled.",
    ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
    {
      default: ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"],
      flag: "kubelet-preferred-address-types",
    },
  ),
  ...upstreamTrustFields({
    certificateAuthorityFile: { flag: AUTHORITY_FLAG },
    clientCertificateFile: { flag: CERTIFICATE_FLAG },
    clientKeyFile: { flag: KEY_FLAG },
  }),
  insecureSkipTLSVerify: boolean("Accept any certificate. Absent: true without certificateAuthorityFile.", {
    // An authority implies verification.
    impliedBy: [implied(AUTHORITY_FLAG, null)],
  }),
  allowedAddresses: strings(
    "Networks that nodes may be in although they are loopback, link-local or otherwise no place of a node.",
    { check: checkNetwork },
  ),
  allowAPIServerEndpoints: boolean(
    "Nodes may have address and port of an API server: the upstream one's, or those of the gateway's own listeners.",
    { default: false },
  ),
  streaming: section("Which requests pass through to which nodes as the client speaks them.", nodeStreaming),
  circuitBreaker: section("When a node that cannot be dialled is no longer dialled.", nodeCircuit),
  egressProxy: optionalSection(
    "The HTTP CONNECT proxy through which nodes are reached, such as konnectivity's. Absent: they are dialled directly.",
    egressProxy,
  ),
  spareConnections: count(
    "Nodes that had a session in the last 10 s and have a connection ready for their next, TLS handshake included: at most so many, a connection each. 0: none.",
    { default: 0, from: 0, to: 10_000 },
  ),
  verifyNodeName: boolean(
    "The certificate must be that of `system:node:<name>`, so that no node can pose as another.",
    { default: false },
  ),
});

/** Connections to kubelets. */
export const kubelet = shaped(checked(fields, checkKubelet), (values) => ({
  ...values,
  insecureSkipTLSVerify: skipsVerification(values),
}));

/**
 * As kube-apiserver, does not verify kubelets without an authority: their certificates are
 * self-signed by default.
 */
function skipsVerification(values: ValueOf<typeof fields>): boolean {
  return values.insecureSkipTLSVerify ?? values.certificateAuthorityFile === undefined;
}

function checkKubelet(values: ValueOf<typeof fields>, section: Section): void {
  checkUpstreamTrust(values, section, [CERTIFICATE_FLAG, KEY_FLAG]);
  if (values.verifyNodeName && (values.scheme === "http" || skipsVerification(values))) {
    section.problem("verifyNodeName", "needs scheme https and certificateAuthorityFile");
  }
}
