import { checkNetwork } from "@sluice/client/internal/config/address-list";
import { checked, shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, file, implied, string } from "@sluice/client/internal/config/fields";
import { notAmong, type Section } from "@sluice/client/internal/config/section";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";
import { count, duration } from "../number-fields.ts";
import { choices, map, optionalSection, section, strings } from "../section-fields.ts";

const MODES = ["auto", "websocket", "spdy", "websocket-only"] as const;

/** Which WebSocket requests pass through to a node. */
export type StreamingMode = (typeof MODES)[number];

/** The annotation that sets a node's StreamingMode. */
export const STREAMING_ANNOTATION = "sluice.dev/streaming";

/**
 * The annotation with the features of the Sluice in front of a node's kubelet; kubelets do not
 * overwrite it.
 */
export const PUBLISHED_FEATURES_ANNOTATION = "sluice.dev/published-features";

const PAUSE = { from: "100ms", to: "24h" } as const;

const streamingFields = table({
  mode: choice(
    "Which WebSocket requests pass through to a node. `auto`: all if the node declares ExtendWebSocketsToKubelet; `websocket`: all; `spdy`: none; `websocket-only`: all, and SPDY is bridged to WebSocket.",
    MODES,
    { default: "auto" },
  ),
  nodes: map(
    `Modes by node name. Other nodes use their annotation \`${STREAMING_ANNOTATION}\`, or \`mode\`.`,
    { type: "map of modes", values: { enum: [...MODES, null] }, parse: modeOf },
  ),
  retryFailedPath: duration(
    "How long a failed path is not used; doubles with each further failure. Past it the path is tried again.",
    { default: "1m", ...PAUSE },
  ),
  maxRetryFailedPath: duration("The longest such pause; at least `retryFailedPath`.", {
    default: "30m",
    ...PAUSE,
  }),
});

const nodeStreaming = shaped(streamingFields, ({ nodes, ...values }, section) => ({
  ...values,
  nodes: new Map(Object.entries(nodes)),
  maxRetryFailedPathMs: longestOf(
    section,
    ["retryFailedPath", values.retryFailedPathMs],
    ["maxRetryFailedPath", values.maxRetryFailedPathMs],
  ),
}));

export type NodeStreaming = ValueOf<typeof nodeStreaming>;

const circuitFields = table({
  failures: count("Failed dials in a row after which sessions to the node get 503 at once.", {
    default: 3,
    from: 1,
    to: 1_000,
  }),
  retry: duration(
    "How long sessions then get 503. Doubles with each failure; at most 1 s after a refused connection. Past it one session tries the node.",
    {
      default: "5s",
      ...PAUSE,
    },
  ),
  maxRetry: duration("The longest such pause; at least `retry`.", { default: "1m", ...PAUSE }),
});

const nodeCircuit = shaped(circuitFields, (values, section) => ({
  ...values,
  maxRetryMs: longestOf(section, ["retry", values.retryMs], ["maxRetry", values.maxRetryMs]),
}));

export type NodeCircuit = ValueOf<typeof nodeCircuit>;

const AUTHORITY_FLAG = "kubelet-certificate-authority";
const CERTIFICATE_FLAG = "kubelet-client-certificate";
const KEY_FLAG = "kubelet-client-key";

/** The HTTP CONNECT proxy to the nodes; EgressSelectorConfiguration's HTTPConnect transport. */
const egressProxy = checked(
  table({
    url: string("`http://host:port`, `https://host:port` or `unix:///path`.", {
      required: 'is required, such as "https://konnectivity:8131" or "unix:///run/proxy.sock"',
      check: checkProxyUrl,
    }),
    ...upstreamTrustFields(),
    credentialsFile: file(
      "One line `user:password`, sent as Basic credentials; read again at each dial.",
      "text",
    ),
  }),
  checkUpstreamTrust,
);

const fields = table({
  scheme: choice("`https`, as kubelets serve it; `http` for fake nodes and local hops.", ["https", "http"], {
    default: "https",
  }),
  port: count("Port of nodes that publish none in status.daemonEndpoints.", {
    default: 10_250,
    from: 1,
    to: 65_535,
  }),
  preferredAddressTypes: choices(
    "Types of node addresses; Sluice dials the first that a node has.",
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
    "Loopback, link-local or otherwise reserved networks that node addresses may be in.",
    { check: checkNetwork },
  ),
  allowAPIServerEndpoints: boolean(
    "Allow node addresses with the address and port of the upstream API server, or of the gateway's own listeners.",
    { default: false },
  ),
  streaming: section("Which requests pass through to a node in the client's own protocol.", nodeStreaming),
  circuitBreaker: section("When Sluice stops dialling an unreachable node.", nodeCircuit),
  egressProxy: optionalSection(
    "HTTP CONNECT proxy to the nodes, such as konnectivity's. Absent: Sluice dials nodes directly.",
    egressProxy,
  ),
  spareConnections: count(
    "Idle TLS connections that are kept ready, one for each node with a session in the last 10 s. Past it the next session dials.",
    { default: 0, from: 0, to: 10_000 },
  ),
  verifyNodeName: boolean("Require that a node's certificate names `system:node:<name>`.", {
    default: false,
  }),
});

/** Connections to kubelets. */
export const kubelet = shaped(checked(fields, checkKubelet), (values) => ({
  ...values,
  insecureSkipTLSVerify: skipsVerification(values),
}));

/**
 * Like kube-apiserver, does not verify kubelets without an authority: their certificates are
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

function checkProxyUrl(value: string): string | undefined {
  const shape = "must be http://host:port, https://host:port or unix:///path";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return shape;
  // People share configuration files, so credentials belong in a secret file.
  if (url.username !== "" || url.password !== "") return "must not hold credentials; use credentialsFile";
  if (url.protocol === "unix:") {
    return url.hostname === "" && url.pathname.length > 1 && url.search + url.hash === "" ? undefined : shape;
  }
  const isPlain = url.pathname === "/" && url.search === "" && url.hash === "";
  return (url.protocol === "http:" || url.protocol === "https:") && isPlain ? undefined : shape;
}

export function isStreamingMode(value: unknown): value is StreamingMode {
  return MODES.some((mode) => mode === value);
}

function modeOf(value: unknown): StreamingMode {
  if (isStreamingMode(value)) return value;
  throw new RangeError(typeof value === "string" ? notAmong(value, MODES) : "must be a string");
}

/** The longest pause; a longer first pause raises the default. */
function longestOf(
  section: Section,
  [first, firstMs]: readonly [string, number],
  [longest, longestMs]: readonly [string, number],
): number {
  if (longestMs < firstMs && section.has(longest))
    section.problem(longest, `must not be shorter than ${first}`);
  return Math.max(firstMs, longestMs);
}
