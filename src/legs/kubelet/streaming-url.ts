import { genericError } from "../../api/status.ts";
import type { UpstreamEndpoint } from "../../net/dial.ts";
import type { UpstreamTls } from "../../net/tls.ts";

/** Where a runtime's streaming URL leads. The path holds a token: it is good for one request, and never shown. */
export interface StreamingRoute {
  readonly endpoint: UpstreamEndpoint;
  readonly path: string;
}

/**
 * Reads a runtime's streaming URL. One without a scheme (cri-dockerd: `//[::]:41237/cri/exec/...`) is
 * http. Throws StatusError 500, without the URL in its text.
 */
export function streamingRouteOf(url: string, tls: UpstreamTls): StreamingRoute {
  const parsed = parse(url.startsWith("//") ? `http:${url}` : url);
  const isTls = parsed?.protocol === "https:";
  if (parsed === undefined || (!isTls && parsed.protocol !== "http:") || parsed.hostname === "") {
    throw genericError(500, "the container runtime gave a streaming URL that cannot be used");
  }
  return {
    endpoint: {
      host: dialable(parsed.hostname.replace(/^\[|\]$/g, "")),
      port: parsed.port === "" ? (isTls ? 443 : 80) : Number(parsed.port),
      tls: isTls ? tls : undefined,
    },
    path: `${parsed.pathname}${parsed.search}`,
  };
}

/** A server that listens on every address says so in its URL; it is on this machine. */
function dialable(host: string): string {
  return host === "0.0.0.0" || host === "::" ? "localhost" : host;
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}
