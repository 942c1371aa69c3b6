import type { ListenerTls } from "./certificate-files.ts";
import { readCertificateFiles } from "./certificate-files.ts";
import { type IngressListener, readIngressListener } from "./ingress-listener.ts";
import { type KubeletListener, readKubeletListener } from "./kubelet-listener.ts";
import { checkHost, type ListenerAddress, readAddress } from "./listener-address.ts";
import type { Section } from "./section.ts";

/** The Kubernetes API leg: kubectl's side. */
export interface ApiServerListener extends ListenerAddress {
  /** Absent: plain HTTP, for loopback or behind a TLS hop. */
  readonly tls: ListenerTls | undefined;
  /** Whether TLS clients are offered HTTP/2 beside HTTP/1.1. */
  readonly http2: boolean;
}

export interface AdminListener extends ListenerAddress {
  /** Host names that requests may be for, besides addresses, names of one label and those of the cluster's Services. */
  readonly allowedHosts: readonly string[];
}

export interface Listeners {
  readonly apiServer: ApiServerListener;
  /** The node leg; absent: this is no node. */
  readonly kubelet: KubeletListener | undefined;
  /** /livez, /readyz, /metrics, /debug. Unauthenticated: keep it away from users. */
  readonly admin: AdminListener;
  /** Absent: no Ingress is served. */
  readonly ingress: IngressListener | undefined;
}

export const defaultListeners: Listeners = {
  // Loopback until told otherwise: both may be reachable by nobody that the operator did not think of.
  apiServer: { address: "127.0.0.1", port: 6443, tls: undefined, http2: true },
  kubelet: undefined,
  admin: { address: "127.0.0.1", port: 8081, allowedHosts: [] },
  ingress: undefined,
};

export function readListeners(section: Section): Listeners {
  const apiServer = section.section("apiServer");
  const listeners = {
    apiServer: {
      ...readAddress(apiServer, defaultListeners.apiServer),
      tls: readCertificateFiles(apiServer, "tls"),
      http2: apiServer.boolean("http2", defaultListeners.apiServer.http2),
    },
    kubelet: section.has("kubelet") ? readKubeletListener(section.section("kubelet")) : undefined,
    admin: readAdmin(section.section("admin")),
    ingress: section.has("ingress") ? readIngressListener(section.section("ingress"), checkHost) : undefined,
  };
  apiServer.finish();
  checkPorts(section, listeners);
  section.finish();
  return listeners;
}

function readAdmin(section: Section): AdminListener {
  const { address, port } = readAddress(section, defaultListeners.admin);
  const allowedHosts = section.strings("allowedHosts", [], checkHost);
  section.finish();
  return { address, port, allowedHosts };
}

/** Two listeners cannot have one port, but on different addresses. */
function checkPorts(section: Section, { apiServer, admin, kubelet, ingress }: Listeners): void {
  const places = [
    { listener: "apiServer", field: "port", ...apiServer },
    { listener: "admin", field: "port", ...admin },
    ...(kubelet === undefined ? [] : [{ listener: "kubelet", field: "port", ...kubelet }]),
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
