import { isIP } from "node:net";
import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, file, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { optionalSection, section, strings } from "../section-fields.ts";
import { ingressListener } from "./ingress-listener.ts";
import { kubeletListener } from "./kubelet-listener.ts";
import { addressFields, checkHost, listenerTls, proxyProtocol, portOf as readPort } from "./tls-settings.ts";

const DEFAULT_PEER_NAME = "sluice-peer";

const REQUIRED = "is required: replicas know each other by their certificates";

const tls = table({
  certFile: file("Certificate chain, PEM, valid for servers and clients.", "certificates", {
    required: REQUIRED,
  }),
  keyFile: file("Private key, PEM.", "private key", {
    required: REQUIRED,
    certificate: "certFile",
  }),
  certificateAuthorityFile: file(
    "CA certificates (PEM) that sign the replicas' certificates.",
    "certificates",
    {
      required: REQUIRED,
    },
  ),
  name: string("DNS name that every replica's certificate must contain.", {
    default: DEFAULT_PEER_NAME,
    check: checkHost,
  }),
});

const service = table({
  name: string("Name of the Service, which must publish addresses that are not ready.", {
    required: "is required: the Service whose EndpointSlices name the replicas",
  }),
  namespace: string("Its namespace.", { default: "default" }),
  port: string("Name of its port.", { default: "peer" }),
});

/** The gateway's other replicas. */
const peersListener = checked(
  table({
    ...addressFields(8444),
    tls: section("How replicas identify themselves to each other.", tls),
    sessionKeyFile: file(
      "Keys of session names, the same on all replicas: 1 to 4 lines of at least 32 characters. The first signs; all are accepted.",
      "session keys",
      { required: "is required: replicas accept the sessions' names that it signs" },
    ),
    addresses: strings("`host:port` of each replica; may include this one.", { check: checkPeer }),
    service: optionalSection("Replicas are the endpoints of this headless Service.", service),
  }),
  ({ addresses, service: named }, section) => {
    if (addresses.length > 0 === (named !== undefined)) {
      section.problem("addresses", "must be given, or else service: where the other replicas are");
    }
  },
);

export type PeersListener = ValueOf<typeof peersListener>;

/** Splits `host:port`; an IPv6 address has brackets. */
export function peerAddressOf(value: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, digits = ""] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(value) ?? [];
  const host = bracketed ?? plain ?? "";
  const port = Number(digits);
  const isHost = bracketed === undefined ? checkHost(host) === undefined : isIP(host) === 6;
  return isHost && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

function checkPeer(value: string): string | undefined {
  if (peerAddressOf(value) !== undefined) return undefined;
  return `must be host:port such as "10.0.0.7:8444", got ${JSON.stringify(value.slice(0, 80))}`;
}

const apiServer = table({
  ...addressFields(6443, {
    address: { flag: { name: "bind-address", placeholder: "ADDRESS" } },
    port: { flag: { name: "secure-port", placeholder: "PORT", read: readPort } },
  }),
  tls: optionalSection("Certificate and key, versions and ciphers. Absent: plain HTTP.", listenerTls),
  proxyProtocol: proxyProtocol(),
  http2: boolean("Offer HTTP/2 to TLS clients, besides HTTP/1.1.", { default: true }),
});

const admin = table({
  ...addressFields(8081),
  allowedHosts: strings(
    "Host names to accept, besides IP addresses, single-label names and names of the cluster's Services.",
    { check: checkHost },
  ),
});

const fields = table({
  apiServer: optionalSection("The Kubernetes API for kubectl. Absent: no port is opened for it.", apiServer),
  kubelet: optionalSection(
    "A kubelet's API in front of a container runtime. Absent: the gateway is not a node.",
    kubeletListener,
  ),
  admin: section(
    "/livez, /readyz, /metrics and /debug, without authentication: for operators, not for users.",
    admin,
  ),
  ingress: optionalSection("HTTP by Ingress v1. Absent: no Ingress is served.", ingressListener),
  peers: optionalSection(
    "Connections from other replicas, for resumed sessions and session lists. Absent: the gateway has no other replicas.",
    peersListener,
  ),
});

export const listeners = checked(checked(fields, checkTraffic), checkPorts);

type Listeners = ValueOf<typeof fields>;

interface ListenerRow<Section extends keyof Listeners> {
  /** The listener's name in logs, inherited sockets, URLs and the primary. */
  readonly name: string;
  readonly section: Section;
  /** The configuration field of its port. */
  readonly field: string;
  readonly portOf: (listener: NonNullable<Listeners[Section]>) => number;
  readonly isTls: (listener: NonNullable<Listeners[Section]>) => boolean;
  /** No node may have this listener's address, or the gateway would dial itself. */
  readonly isReserved?: boolean;
  /**
   * A drain stops accepting here at once. Other listeners accept while sessions run, to tell
   * clients that sessions go to another process.
   */
  readonly closesFirst?: boolean;
}

/** Every port that the gateway may open. A new listener is a new row. */
const ROWS = [
  row({ name: "apiServer", section: "apiServer", field: "port", portOf, isTls, isReserved: true }),
  row({ name: "admin", section: "admin", field: "port", portOf, isTls: () => false, isReserved: true }),
  row({ name: "kubelet", section: "kubelet", field: "port", portOf, isTls }),
  row({ name: "peers", section: "peers", field: "port", portOf, isTls, isReserved: true }),
  row({
    name: "ingress.http",
    section: "ingress",
    field: "httpPort",
    portOf: ({ httpPort }) => httpPort,
    isTls: () => false,
    closesFirst: true,
  }),
  row({
    name: "ingress.https",
    section: "ingress",
    field: "httpsPort",
    portOf: ({ httpsPort }) => httpsPort,
    isTls: () => true,
    closesFirst: true,
  }),
];

/** One port that the configuration opens. */
export interface ListenerPort {
  readonly name: string;
  readonly section: keyof Listeners;
  readonly field: string;
  readonly address: string;
  readonly port: number;
  readonly scheme: "http" | "https";
  readonly isReserved: boolean;
  readonly closesFirst: boolean;
  /** Proxies whose connections begin with a PROXY protocol header; absent: none. */
  readonly proxies: readonly string[] | undefined;
}

function row<Section extends keyof Listeners>({
  section: name,
  portOf: read,
  isTls: isSecure,
  isReserved = false,
  closesFirst = false,
  ...rest
}: ListenerRow<Section>): (listeners: Listeners) => ListenerPort | undefined {
  return (listeners) => {
    const listener: NonNullable<Listeners[Section]> | undefined = listeners[name] ?? undefined;
    if (listener === undefined) return undefined;
    const { proxyProtocol: behind } = listener as { proxyProtocol?: { from: readonly string[] } };
    return {
      ...rest,
      section: name,
      address: listener.address,
      port: read(listener),
      scheme: isSecure(listener) ? "https" : "http",
      isReserved,
      closesFirst,
      proxies: behind?.from,
    };
  };
}

function portOf({ port }: { readonly port: number }): number {
  return port;
}

function isTls({ tls }: { readonly tls?: unknown }): boolean {
  return tls !== undefined;
}

/** The configured listeners' ports. */
export function listenerPorts(configured: Listeners): readonly ListenerPort[] {
  return ROWS.flatMap((read) => read(configured) ?? []);
}

/** True if requests reach the API server's leg: at its own port, or behind the front door. */
export function servesApi({ apiServer, ingress }: Listeners): boolean {
  return apiServer !== undefined || ingress?.streamingGateways.some(({ upstream }) => !upstream) === true;
}

/** Without a traffic listener the process would serve no client. */
function checkTraffic({ apiServer, kubelet, ingress }: Listeners, section: Section): void {
  if ([apiServer, kubelet, ingress].some((listener) => listener !== undefined)) return;
  section.problem("apiServer", "is required without kubelet and ingress: traffic needs a listener");
}

/** Two listeners can share a port only on different addresses. */
function checkPorts(configured: Listeners, listenersSection: Section): void {
  const ports = listenerPorts(configured);
  for (const [index, { section: name, field, address, port }] of ports.entries()) {
    const other = ports
      .slice(0, index)
      .find((before) => before.port === port && port !== 0 && overlap(before.address, address));
    if (other !== undefined) {
      const taken = `${port} is the port of listeners.${other.section}.${other.field} too`;
      listenersSection.section(name).problem(field, taken);
    }
  }
}

function overlap(one: string, other: string): boolean {
  const isAny = (address: string) => address === "0.0.0.0" || address === "::";
  return one === other || isAny(one) || isAny(other);
}
