import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { strings } from "../list-fields.ts";
import { optionalSection, section } from "../section-fields.ts";
import { ingressListener } from "./ingress-listener.ts";
import { kubeletListener } from "./kubelet-listener.ts";
import { addressFields, checkHost, portOf, proxyProtocol } from "./listener-address.ts";
import { peersListener } from "./peers-listener.ts";
import { listenerTls } from "./tls-settings.ts";

const apiServer = table({
  ...addressFields(6443, {
    address: { flag: { name: "bind-address", placeholder: "ADDRESS" } },
    port: { flag: { name: "secure-port", placeholder: "PORT", read: portOf } },
  }),
  tls: optionalSection(
    "Certificate and key, versions and ciphers. Absent: plain HTTP, for loopback or behind a TLS hop.",
    listenerTls,
  ),
  proxyProtocol: proxyProtocol(),
  http2: boolean("Offer HTTP/2 to TLS clients, besides HTTP/1.1.", { default: true }),
});

const admin = table({
  ...addressFields(8081),
  allowedHosts: strings(
    "Host names to accept in requests, besides IP addresses, single-label names and names of the cluster's Services.",
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

/** The listeners of a file without `listeners`. */
export const DEFAULT_LISTENERS = { apiServer: {} };

/** The configured listeners' names, for logs and inherited sockets. */
export function listenerNames({ apiServer, kubelet, ingress, peers }: Listeners): readonly string[] {
  return [
    "admin",
    ...(apiServer === undefined ? [] : ["apiServer"]),
    ...(kubelet === undefined ? [] : ["kubelet"]),
    ...(peers === undefined ? [] : ["peers"]),
    ...(ingress === undefined ? [] : ["ingress.http", "ingress.https"]),
  ];
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
function checkPorts({ apiServer, admin, kubelet, ingress, peers }: Listeners, section: Section): void {
  const places = [
    ...(apiServer === undefined ? [] : [{ listener: "apiServer", field: "port", ...apiServer }]),
    { listener: "admin", field: "port", ...admin },
    ...(kubelet === undefined ? [] : [{ listener: "kubelet", field: "port", ...kubelet }]),
    ...(peers === undefined ? [] : [{ listener: "peers", field: "port", ...peers }]),
    ...(["httpPort", "httpsPort"] as const).flatMap((field) =>
      ingress === undefined
        ? []
        : [{ listener: "ingress", field, address: ingress.address, port: ingress[field] }],
    ),
  ];
  for (const [index, { listener, field, address, port }] of places.entries()) {
    const other = places
      .slice(0, index)
      .find((place) => place.port === port && port !== 0 && overlap(place.address, address));
    if (other !== undefined) {
      const taken = `${port} is the port of listeners.${other.listener}.${other.field} too`;
      section.section(listener).problem(field, taken);
    }
  }
}

function overlap(one: string, other: string): boolean {
  const isAny = (address: string) => address === "0.0.0.0" || address === "::";
  return one === other || isAny(one) || isAny(other);
}
