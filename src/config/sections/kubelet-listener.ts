import { checked, table, unflagged, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, file, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";
import { optionalSection, section } from "../section-fields.ts";
import { authentication } from "./authentication.ts";
import { authorization } from "./authorization.ts";
import { addressFields, listenerTls } from "./tls-settings.ts";
import { ORIGIN_URL } from "./upstream-api-server.ts";

export const DEFAULT_RUNTIME_ENDPOINT = "unix:///run/containerd/containerd.sock";

const runtime = table({
  endpoint: string("Socket of the runtime's CRI service.", {
    default: DEFAULT_RUNTIME_ENDPOINT,
    check: checkEndpoint,
  }),
  nodeName: string("The node's name in the Kubernetes API.", {
    required: "is required: permissions are asked for the node by its name",
    flag: "hostname-override",
    check: checkNodeName,
  }),
  streamingServer: section(
    "Certificates for a streaming server that speaks TLS.",
    checked(table(upstreamTrustFields()), checkUpstreamTrust),
  ),
});

const upstreamFields = table({
  url: string("Scheme, host and port of the kubelet.", {
    ...ORIGIN_URL,
    required: 'is required, such as "https://127.0.0.1:10260"',
  }),
  serverName: string("Name that the kubelet's certificate must contain. Absent: the host of `url`.", {
    flag: "kubelet-upstream-server-name",
  }),
  ...upstreamTrustFields(),
  tokenFile: file(
    "Bearer token for the kubelet, instead of a client certificate; read for every request.",
    "text",
  ),
});

/** The kubelet behind a kubelet listener; it gets the requests that the listener does not serve. */
const kubeletUpstream = checked(upstreamFields, checkKubeletUpstream);

const fields = table({
  ...addressFields(10_250, { address: { flag: { name: "kubelet-address", placeholder: "ADDRESS" } } }),
  tls: optionalSection(
    "Certificate and key, versions and ciphers. Absent: plain HTTP.",
    unflagged(listenerTls),
  ),
  http2: boolean("Offer HTTP/2 to TLS clients, besides HTTP/1.1.", { default: true }),
  authentication: optionalSection(
    "Authentication of callers on this listener; API servers present client certificates. Absent: the file's `authentication`.",
    unflagged(authentication),
  ),
  authorization: optionalSection(
    "Permissions on `nodes/proxy` and its subresources. Absent: the file's `authorization`.",
    unflagged(authorization),
  ),
  requireCreateForUpgrades: boolean(
    "Require `create` on nodes/proxy, besides `get`, for a GET that upgrades.",
    {
      default: true,
    },
  ),
  runtime: section("The node's container runtime.", runtime),
  upstream: optionalSection(
    "The node's kubelet. It answers everything except sessions, container logs and `/run`. Absent: Sluice answers `/pods`, `/stats/summary` and `/healthz` from the runtime.",
    kubeletUpstream,
  ),
});

/** A kubelet's HTTP API in front of a container runtime. */
export const kubeletListener = checked(fields, checkUpstreamIsAnother);

function checkEndpoint(value: string): string | undefined {
  if (/^unix:\/\/\/./.test(value)) return undefined;
  return `must be a unix socket such as ${JSON.stringify(DEFAULT_RUNTIME_ENDPOINT)}, got ${JSON.stringify(value.slice(0, 80))}`;
}

function checkNodeName(value: string): string | undefined {
  if (/^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(value))
    return undefined;
  return `must be the name of a Node: a lower-case DNS name, got ${JSON.stringify(value.slice(0, 80))}`;
}

/** A request that is relayed to this listener itself would loop until a limit ends it. */
function checkUpstreamIsAnother({ address, port, upstream }: ValueOf<typeof fields>, section: Section): void {
  if (upstream === undefined || !URL.canParse(upstream.url)) return;
  const { hostname, port: upstreamPort } = new URL(upstream.url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const isOwnAddress =
    host === address || (/^(0\.0\.0\.0|::)$/.test(address) && /^(127\.|::1$|localhost$)/.test(host));
  if (isOwnAddress && Number(upstreamPort) === port && port !== 0)
    section.section("upstream").problem("url", "must not be the address of this listener");
}

/** Callers' credentials never reach the kubelet, so an https kubelet needs Sluice's own. */
function checkKubeletUpstream(values: ValueOf<typeof upstreamFields>, section: Section): void {
  checkUpstreamTrust(values, section);
  const { url, tokenFile, clientCertificateFile } = values;
  const given = [tokenFile, clientCertificateFile].filter((path) => path !== undefined).length;
  if (url.startsWith("https:") && given !== 1)
    section.problem("url", "needs one of clientCertificateFile and tokenFile: the credentials of Sluice");
  if (url.startsWith("http:") && tokenFile !== undefined)
    section.problem("tokenFile", "must not be sent in clear: url has to be https");
}
