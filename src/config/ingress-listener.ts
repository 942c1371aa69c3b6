import { isIP } from "node:net";
import { checkNetwork } from "./address-list.ts";
import { type ListenerTls, readCertificateFiles } from "./certificate-files.ts";
import { type LeaderElectionSettings, readLeaderElection } from "./leader-election.ts";
import type { Section } from "./section.ts";
import { checkOrigin } from "./upstream-api-server.ts";
import { readUpstreamTrust, type UpstreamTrust } from "./upstream-trust.ts";

/** The front door: HTTP routes by Ingress v1. */
export interface IngressListener {
  readonly address: string;
  /** HTTP/1.1, and HTTP/2 with prior knowledge. 0 lets the system choose a port. */
  readonly httpPort: number;
  /** TLS, HTTP/1.1 or HTTP/2 as negotiated. */
  readonly httpsPort: number;
  /** For server names that no Secret has a certificate for. Absent: a self-signed one is made at start. */
  readonly defaultCertificate: ListenerTls | undefined;
  /** The `spec.controller` of the IngressClasses that are ours. */
  readonly controllerName: string;
  /** What the annotation kubernetes.io/ingress.class may say beside the names of our classes. */
  readonly legacyClassName: string | undefined;
  /** Serve Ingresses that name no class and for which no default class stands in. */
  readonly servesWithoutClass: boolean;
  /** Whether Ingresses of other namespaces may add paths to a host that an older one names. */
  readonly hostOwnership: HostOwnership;
  /** Where clients reach the front door: IP addresses and host names for status.loadBalancer. Empty: none is published. */
  readonly publishedAddresses: readonly string[];
  /** Networks that endpoints may have although they are loopback, link-local or otherwise no place of a pod. */
  readonly allowedEndpointAddresses: readonly string[];
  /** What backends of kind StreamingGateway may name. */
  readonly streamingGateways: readonly StreamingGatewayTarget[];
  /** Read where a live API tells the routes. */
  readonly leaderElection: LeaderElectionSettings;
}

/** `first`: a host belongs to the namespace of the oldest Ingress that names it; `shared`: others may add paths, and are reported. */
export type HostOwnership = (typeof HOST_OWNERSHIPS)[number];
const HOST_OWNERSHIPS = ["shared", "first"] as const;

export interface StreamingGatewayTarget {
  readonly name: string;
  /** Absent: this gateway's own API listener. */
  readonly upstream: (UpstreamTrust & { readonly url: string }) | undefined;
}

export const DEFAULT_CONTROLLER_NAME = "sluice.dev/ingress-controller";
const PORTS = { min: 0, max: 65_535 };
const DEFAULTS = { address: "127.0.0.1", httpPort: 8080, httpsPort: 8443 };

export function readIngressListener(
  section: Section,
  checkHost: (value: string) => string | undefined,
): IngressListener {
  const listener = {
    address: section.string("address", DEFAULTS.address, checkHost),
    httpPort: section.count("httpPort", DEFAULTS.httpPort, PORTS),
    httpsPort: section.count("httpsPort", DEFAULTS.httpsPort, PORTS),
    defaultCertificate: readCertificateFiles(section, "defaultCertificate"),
    controllerName: section.string("controllerName", DEFAULT_CONTROLLER_NAME),
    legacyClassName: section.optionalString("legacyClassName"),
    servesWithoutClass: section.boolean("servesWithoutClass", false),
    hostOwnership: section.choice("hostOwnership", "shared", HOST_OWNERSHIPS),
    publishedAddresses: section.strings("publishedAddresses", [], checkPublished),
    allowedEndpointAddresses: section.strings("allowedEndpointAddresses", [], checkNetwork),
    streamingGateways: section.sections("streamingGateways").map(readTarget),
    leaderElection: readLeaderElection(section.section("leaderElection")),
  };
  section.finish();
  return listener;
}

function readTarget(section: Section): StreamingGatewayTarget {
  const name = section.optionalString("name");
  if (name === undefined && !section.has("name")) section.problem("name", "is required");
  const url = section.optionalString("url", checkOrigin);
  // With a certificate of its own the gateway would lend every caller its rights.
  for (const field of ["clientCertificateFile", "clientKeyFile"]) {
    if (section.has(field)) section.problem(field, "must not be given: callers bring their own identity");
  }
  const upstream =
    url === undefined ? undefined : { url: new URL(url).origin, ...readUpstreamTrust(section, false) };
  section.finish();
  return { name: name ?? "", upstream };
}

function checkPublished(value: string): string | undefined {
  const isName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/.test(value);
  // `10.0.0` and `10.0.0.256` are mistyped addresses and no names.
  return isIP(value) !== 0 || (isName && !/(^|\.)\d+$/.test(value))
    ? undefined
    : "must be an IP address or a host name in lower case";
}
