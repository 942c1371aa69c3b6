import { type Authentication, readAuthentication } from "./authentication.ts";
import { type Authorization, readAuthorization } from "./authorization.ts";
import { type ListenerTls, readCertificateFiles } from "./certificate-files.ts";
import { type ListenerAddress, readAddress } from "./listener-address.ts";
import type { Section } from "./section.ts";
import { readUpstreamTrust, type UpstreamTrust } from "./upstream-trust.ts";

/** The node leg: a kubelet's HTTP API in front of a container runtime. */
export interface KubeletListener extends ListenerAddress {
  /** Absent: plain HTTP, for loopback. */
  readonly tls: ListenerTls | undefined;
  /** Whether TLS clients are offered HTTP/2 beside HTTP/1.1. */
  readonly http2: boolean;
  /** Absent: the file's own. API servers come with client certificates: clientCAFile. */
  readonly authentication: Authentication | undefined;
  /** Absent: the file's own. Asked about `nodes/proxy` and its kin. */
  readonly authorization: Authorization | undefined;
  /** A GET upgrade needs `create` on nodes/proxy, and not `get` alone. */
  readonly requireCreateForUpgrades: boolean;
  readonly runtime: ContainerRuntime;
}

export interface ContainerRuntime {
  /** Of the runtime's CRI service: `unix:///run/containerd/containerd.sock`. */
  readonly endpoint: string;
  /** The node's name in the Kubernetes API. */
  readonly nodeName: string;
  /** For a streaming server that speaks TLS. */
  readonly streamingServer: UpstreamTrust;
}

const DEFAULT_ADDRESS: ListenerAddress = { address: "127.0.0.1", port: 10_250 };
export const DEFAULT_RUNTIME_ENDPOINT = "unix:///run/containerd/containerd.sock";

export function readKubeletListener(section: Section): KubeletListener {
  const listener = {
    ...readAddress(section, DEFAULT_ADDRESS),
    tls: readCertificateFiles(section, "tls"),
    http2: section.boolean("http2", true),
    authentication: section.has("authentication")
      ? readAuthentication(section.section("authentication"))
      : undefined,
    authorization: section.has("authorization")
      ? readAuthorization(section.section("authorization"))
      : undefined,
    requireCreateForUpgrades: section.boolean("requireCreateForUpgrades", true),
    runtime: readRuntime(section.section("runtime")),
  };
  section.finish();
  return listener;
}

function readRuntime(section: Section): ContainerRuntime {
  const endpoint = section.string("endpoint", DEFAULT_RUNTIME_ENDPOINT, checkEndpoint);
  const nodeName = section.optionalString("nodeName", checkNodeName) ?? "";
  if (nodeName === "" && !section.has("nodeName")) {
    section.problem("nodeName", "is required: permissions are asked for the node by its name");
  }
  const streaming = section.section("streamingServer");
  const streamingServer = readUpstreamTrust(streaming, false);
  streaming.finish();
  section.finish();
  return { endpoint, nodeName, streamingServer };
}

function checkEndpoint(value: string): string | undefined {
  if (/^unix:\/\/\/./.test(value)) return undefined;
  return `must be a unix socket such as ${JSON.stringify(DEFAULT_RUNTIME_ENDPOINT)}, got ${JSON.stringify(value.slice(0, 80))}`;
}

function checkNodeName(value: string): string | undefined {
  if (/^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(value))
    return undefined;
  return `must be the name of a Node: a lower-case DNS name, got ${JSON.stringify(value.slice(0, 80))}`;
}
