import { isIP } from "node:net";
import { checkNetwork } from "@sluice/client/internal/config/address-list";
import { checked, shaped, table, unflagged, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, file, string } from "@sluice/client/internal/config/fields";
import { type Section, STANDARD_OUTPUT } from "@sluice/client/internal/config/section";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";
import { optionalSection, section, sections, strings } from "../section-fields.ts";
import { leaderElection } from "./leader-election.ts";
import { addressFields, certificateFiles, listenerPort, proxyProtocol, tlsSettings } from "./tls-settings.ts";
import { ORIGIN_URL } from "./upstream-api-server.ts";

/** The default `spec.controller` of IngressClasses that this gateway serves. */
export const DEFAULT_CONTROLLER_NAME = "sluice.dev/ingress-controller";

const { certificateAuthorityFile, insecureSkipTLSVerify } = upstreamTrustFields();

const targetFields = table({
  name: string("Name that backends of kind StreamingGateway refer to.", { required: "is required" }),
  url: string("Scheme, host and port. Absent: this gateway's own API listener.", ORIGIN_URL),
  certificateAuthorityFile,
  insecureSkipTLSVerify,
});

const streamingGateway = shaped(checked(targetFields, checkTarget), ({ name, url, ...trust }) => ({
  name,
  // The callers' credentials reach this server.
  upstream:
    url === undefined
      ? undefined
      : { url, ...trust, clientCertificateFile: undefined, clientKeyFile: undefined },
}));

const accessLog = table({
  path: file("File to append to; `-` is standard output. SIGHUP reopens it, for log rotation.", undefined, {
    required: `is required; ${STANDARD_OUTPUT} is standard output`,
  }),
});

/** HTTP routing by Ingress v1. */
export const ingressListener = table({
  address: addressFields(0).address,
  httpPort: listenerPort("HTTP/1.1, and HTTP/2 with prior knowledge.", 8080),
  httpsPort: listenerPort("TLS with HTTP/1.1 or HTTP/2.", 8443),
  defaultCertificate: optionalSection(
    "Certificate and key for server names that no Secret covers. Absent: a self-signed one.",
    unflagged(certificateFiles),
  ),
  tls: section("TLS versions and ciphers of `httpsPort`.", unflagged(tlsSettings)),
  proxyProtocol: proxyProtocol(),
  controllerName: string("The `spec.controller` of IngressClasses that belong to this gateway.", {
    default: DEFAULT_CONTROLLER_NAME,
  }),
  legacyClassName: string(
    "Another value of the annotation kubernetes.io/ingress.class to serve, besides the names of the gateway's classes.",
  ),
  servesWithoutClass: boolean("Serve Ingresses without a class if no default class exists.", {
    default: false,
  }),
  hostOwnership: choice(
    "`first`: a host belongs to the namespace of the oldest Ingress that names it. `shared`: Ingresses of other namespaces may add paths, and are reported.",
    ["shared", "first"],
    { default: "shared" },
  ),
  publishedAddresses: strings(
    "IP addresses and host names that clients use, for status.loadBalancer. Empty: Sluice writes no status.",
    { check: checkPublished },
  ),
  allowedEndpointAddresses: strings(
    "Loopback, link-local or otherwise reserved networks that endpoints may be in.",
    { check: checkNetwork },
  ),
  streamingGateways: sections("Targets of backends of kind StreamingGateway.", streamingGateway),
  accessLog: optionalSection(
    "One JSON line per exchange, without its query (docs/logs.md). Absent: no access log.",
    shaped(accessLog, ({ path }) => ({ path: path === STANDARD_OUTPUT ? undefined : path })),
  ),
  leaderElection: section(
    "Elects the replica that writes statuses and Events to a live API.",
    leaderElection,
  ),
});

export type IngressListener = ValueOf<typeof ingressListener>;
export type HostOwnership = IngressListener["hostOwnership"];

function checkTarget(values: ValueOf<typeof targetFields>, section: Section): void {
  // A client certificate would give every caller the gateway's rights.
  for (const field of ["clientCertificateFile", "clientKeyFile"]) {
    if (section.has(field)) section.problem(field, "must not be given: callers bring their own identity");
  }
  for (const field of ["certificateAuthorityFile", "insecureSkipTLSVerify"]) {
    if (values.url === undefined && section.has(field)) section.problem(field, "is read with url only");
  }
  checkUpstreamTrust(values, section);
}

function checkPublished(value: string): string | undefined {
  const isName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(value);
  // `10.0.0` and `10.0.0.256` are mistyped addresses, not names.
  return isIP(value) !== 0 || (isName && !/(^|\.)\d+$/.test(value))
    ? undefined
    : "must be an IP address or a host name in lower case";
}
