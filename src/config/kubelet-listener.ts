import { authentication } from "./authentication.ts";
import { authorization } from "./authorization.ts";
import { certificateFiles } from "./certificate-files.ts";
import { table, unflagged, type ValueOf } from "./field.ts";
import { boolean, string } from "./fields.ts";
import { addressFields } from "./listener-address.ts";
import { optionalSection, section } from "./section-fields.ts";
import { upstreamTrust } from "./upstream-trust.ts";

export const DEFAULT_RUNTIME_ENDPOINT = "unix:///run/containerd/containerd.sock";

const runtime = table({
  endpoint: string("Socket of the runtime's CRI service.", {
    default: DEFAULT_RUNTIME_ENDPOINT,
    check: checkEndpoint,
  }),
  nodeName: string("The node's name in the Kubernetes API.", {
    required: "is required: permissions are asked for the node by its name",
    check: checkNodeName,
  }),
  streamingServer: section("Trust in a streaming server that speaks TLS.", upstreamTrust),
});

/** A kubelet's HTTP API in front of a container runtime. */
export const kubeletListener = table({
  ...addressFields(10_250),
  tls: optionalSection("Certificate and key. Absent: plain HTTP, for loopback.", unflagged(certificateFiles)),
  http2: boolean("TLS clients are offered HTTP/2 beside HTTP/1.1.", { default: true }),
  authentication: optionalSection(
    "Callers of this listener; API servers have client certificates. Absent: as `authentication` of the file.",
    unflagged(authentication),
  ),
  authorization: optionalSection(
    "Permissions on `nodes/proxy` and its subresources. Absent: as `authorization` of the file.",
    unflagged(authorization),
  ),
  requireCreateForUpgrades: boolean("A GET upgrade needs `create` on nodes/proxy, and not `get` alone.", {
    default: true,
  }),
  runtime: section("The container runtime of the node.", runtime),
});

export type KubeletListener = ValueOf<typeof kubeletListener>;

function checkEndpoint(value: string): string | undefined {
  if (/^unix:\/\/\/./.test(value)) return undefined;
  return `must be a unix socket such as ${JSON.stringify(DEFAULT_RUNTIME_ENDPOINT)}, got ${JSON.stringify(value.slice(0, 80))}`;
}

function checkNodeName(value: string): string | undefined {
  if (/^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(value))
    return undefined;
  return `must be the name of a Node: a lower-case DNS name, got ${JSON.stringify(value.slice(0, 80))}`;
}
