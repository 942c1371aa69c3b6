import { isIP } from "node:net";
import { type ListenerTls, readCertificateFiles } from "./certificate-files.ts";
import { type IngressListener, readIngressListener } from "./ingress-listener.ts";
import type { Section } from "./section.ts";

export type { ListenerTls } from "./certificate-files.ts";

export interface ListenerAddress {
  /** IP address or host name to listen on; `0.0.0.0` and `::` mean every interface. */
  readonly address: string;
  /** 0 lets the system choose a free one. */
  readonly port: number;
}

/** The Kubernetes API leg: kubectl's side. */
export interface ApiServerListener extends ListenerAddress {
  /** Absent: plain HTTP, for loopback or behind a TLS hop. */
  readonly tls: ListenerTls | undefined;
}

export interface Listeners {
  readonly apiServer: ApiServerListener;
  /** /livez, /readyz, /metrics, /debug. Unauthenticated: keep it away from users. */
  readonly admin: ListenerAddress;
  /** Absent: no Ingress is served. */
  readonly ingress: IngressListener | undefined;
}

export const defaultListeners: Listeners = {
  // Loopback until told otherwise: both may be reachable by nobody that the operator did not think of.
  apiServer: { address: "127.0.0.1", port: 6443, tls: undefined },
  admin: { address: "127.0.0.1", port: 8081 },
  ingress: undefined,
};

const PORT_RANGE = { min: 0, max: 65_535 };

export function readListeners(section: Section): Listeners {
  const apiServer = section.section("apiServer");
  const listeners = {
    apiServer: {
      ...readAddress(apiServer, defaultListeners.apiServer),
      tls: readCertificateFiles(apiServer, "tls"),
    },
    admin: readAddress(section.section("admin"), defaultListeners.admin, true),
    ingress: section.has("ingress") ? readIngressListener(section.section("ingress"), checkHost) : undefined,
  };
  apiServer.finish();
  section.finish();
  return listeners;
}

function readAddress(section: Section, fallback: ListenerAddress, isWhole = false): ListenerAddress {
  const address = section.string("address", fallback.address, checkHost);
  const port = section.count("port", fallback.port, PORT_RANGE);
  if (isWhole) {
    section.finish();
  }
  return { address, port };
}

/** What is wrong with a host to listen on, if anything. */
export function checkHost(value: string): string | undefined {
  // A label of digits alone at the end is a mistyped IPv4 address, which a resolver would look up in vain.
  const isName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(
    value,
  );
  if (isIP(value) !== 0 || (isName && !/(^|\.)\d+$/.test(value))) {
    return undefined;
  }
  return `must be an IP address or a host name without port, got ${JSON.stringify(value)}`;
}
