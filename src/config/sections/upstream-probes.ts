import { checked, shaped, table } from "@sluice/client/internal/config/field";
import { choice, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { count } from "../number-fields.ts";
import { optionalSection, section, strings } from "../section-fields.ts";
import { proberElection } from "./leader-election.ts";

const SECONDS = { from: 1, to: 86_400 } as const;
const THRESHOLD = { from: 1, to: 1_000 } as const;

const port = count("Port to check. Absent: the port that requests use.", { from: 1, to: 65_535 });

const httpGet = checked(
  table({
    port,
    path: string("Path of the request.", { default: "/" }),
    scheme: choice("Whether to use TLS.", ["HTTP", "HTTPS"], { default: "HTTP" }),
    protocol: choice("`HTTP2` is HTTP/2 in cleartext.", ["HTTP1", "HTTP2"], { default: "HTTP1" }),
  }),
  ({ scheme, protocol }, section) => {
    if (protocol === "HTTP2" && scheme === "HTTPS")
      section.problem("protocol", "HTTP2 cannot be combined with scheme HTTPS");
  },
);

const grpc = table({
  port,
  service: string("Service of the health check.", { default: "" }),
  mode: choice("Whether to use TLS.", ["Plaintext", "TLS"], { default: "Plaintext" }),
});

const HANDLERS = ["tcpSocket", "httpGet", "grpc"] as const;

const probeFields = table({
  tcpSocket: optionalSection("Opens a TCP connection. The default.", table({ port })),
  httpGet: optionalSection("Sends a GET; 200 to 399 is success.", httpGet),
  grpc: optionalSection("Calls gRPC's health service.", grpc),
  periodSeconds: count("Seconds between attempts.", { default: 10, ...SECONDS }),
  timeoutSeconds: count("Seconds that one attempt may take.", { default: 1, ...SECONDS }),
  successThreshold: count("Successes in a row that make a failed upstream healthy.", {
    default: 1,
    ...THRESHOLD,
  }),
  failureThreshold: count("Failures in a row that make it unhealthy.", { default: 3, ...THRESHOLD }),
});

/** An upstream's probe, with the fields of a container's probe. */
const probe = shaped(checked(probeFields, checkHandlers), ({ tcpSocket, httpGet, grpc, ...times }) => ({
  handler:
    httpGet !== undefined
      ? ({ type: "httpGet", ...httpGet } as const)
      : grpc !== undefined
        ? ({ type: "grpc", ...grpc } as const)
        : ({ type: "tcpSocket", port: tcpSocket?.port } as const),
  ...times,
}));

/** Active health checks of upstreams. */
export const upstreamProbes = table({
  nodes: optionalSection(
    "Checks every node at its kubelet's address; sessions to an unhealthy node get 503 without a dial.",
    probe,
  ),
  gateways: optionalSection("Checks every streaming gateway of the ingress listener that has a URL.", probe),
});

/** Probes pods in place of their kubelets. */
export const podProbes = table({
  nodeNames: strings("Nodes whose pods are probed."),
  threads: count("Threads for probes; `auto`: one for each core. Past it further probes share them.", {
    default: "auto",
    or: "auto",
    from: 0,
    to: 64,
  }),
  leaderElection: section(
    "Elects the replica that probes, with a live API. Ignored if `nodeNames` includes the kubelet listener's node.",
    proberElection,
  ),
});

function checkHandlers(_values: unknown, section: Section): void {
  const [, second] = HANDLERS.filter((name) => section.has(name));
  if (second !== undefined) section.problem(second, "may not specify more than 1 handler type");
}
