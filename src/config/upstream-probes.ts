import type { Section } from "./section.ts";

/** A probe of something behind us, in the fields of a container's probe. Without a port it goes to the one that is used anyway. */
export interface UpstreamProbe {
  readonly handler: UpstreamProbeHandler;
  readonly periodSeconds: number;
  readonly timeoutSeconds: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

export type UpstreamProbeHandler =
  | { readonly type: "tcpSocket"; readonly port: number | undefined }
  | {
      readonly type: "httpGet";
      readonly port: number | undefined;
      readonly path: string;
      readonly scheme: "HTTP" | "HTTPS";
      readonly protocol: "HTTP1" | "HTTP2";
    }
  | {
      readonly type: "grpc";
      readonly port: number | undefined;
      readonly service: string;
      readonly mode: "Plaintext" | "TLS";
    };

export interface UpstreamProbeSettings {
  /** Of every node of the cluster, at its kubelet's address: who is found dead is refused without a dial. Absent: none. */
  readonly nodes: UpstreamProbe | undefined;
  /** Of every streaming gateway of the ingress listener that has a URL. Absent: none. */
  readonly gateways: UpstreamProbe | undefined;
}

/** Whose pods are probed here, as their kubelet would. */
export interface PodProbeSettings {
  readonly nodeNames: readonly string[];
  /** Threads that probes may have to themselves, at most; they are started when there are many probes. "auto": one for each core. */
  readonly threads: number | "auto";
}

const PORT = { min: 1, max: 65_535 };
const SECONDS = { min: 1, max: 86_400 };
const THREADS = { min: 0, max: 64 };
const THRESHOLD = { min: 1, max: 1_000 };

export function readUpstreamProbes(section: Section): UpstreamProbeSettings {
  const settings = {
    nodes: section.has("nodes") ? readProbe(section.section("nodes")) : undefined,
    gateways: section.has("gateways") ? readProbe(section.section("gateways")) : undefined,
  };
  section.finish();
  return settings;
}

export function readPodProbes(section: Section): PodProbeSettings {
  const settings = {
    nodeNames: section.strings("nodeNames", [], () => undefined),
    threads: section.has("threads") ? section.countOr("threads", "auto", 0, THREADS) : ("auto" as const),
  };
  section.finish();
  return settings;
}

function readProbe(section: Section): UpstreamProbe {
  const probe = {
    handler: readHandler(section),
    periodSeconds: section.count("periodSeconds", 10, SECONDS),
    timeoutSeconds: section.count("timeoutSeconds", 1, SECONDS),
    successThreshold: section.count("successThreshold", 1, THRESHOLD),
    failureThreshold: section.count("failureThreshold", 3, THRESHOLD),
  };
  section.finish();
  return probe;
}

function readHandler(section: Section): UpstreamProbeHandler {
  const given = (["tcpSocket", "httpGet", "grpc"] as const).filter((name) => section.has(name));
  const [type = "tcpSocket", second] = given;
  if (second !== undefined) section.problem(second, "may not specify more than 1 handler type");
  const handler = section.section(type);
  const port = handler.has("port") ? handler.count("port", 0, PORT) : undefined;
  const read = readOf(type, handler, port);
  handler.finish();
  return read;
}

function readOf(
  type: "tcpSocket" | "httpGet" | "grpc",
  handler: Section,
  port: number | undefined,
): UpstreamProbeHandler {
  if (type === "tcpSocket") return { type, port };
  if (type === "grpc") {
    const service = handler.string("service", "");
    return { type, port, service, mode: handler.choice("mode", "Plaintext", ["Plaintext", "TLS"]) };
  }
  const scheme = handler.choice("scheme", "HTTP", ["HTTP", "HTTPS"]);
  const protocol = handler.choice("protocol", "HTTP1", ["HTTP1", "HTTP2"]);
  if (protocol === "HTTP2" && scheme === "HTTPS") {
    handler.problem("protocol", "HTTP2 cannot be combined with scheme HTTPS");
  }
  return { type, port, path: handler.string("path", "/"), scheme, protocol };
}
