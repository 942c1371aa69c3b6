import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import type { UpstreamTls } from "@sluice/client/internal/net/tls";
import { parseStreamingUrl } from "../../cri/streaming-url.ts";

/** The destination of a runtime's streaming URL. The path contains a single-use token and is never shown. */
interface StreamingRoute {
  readonly endpoint: UpstreamEndpoint;
  readonly path: string;
}

/** Throws StatusError 500 for an unusable URL. */
export function streamingRouteOf(text: string, tls: UpstreamTls): StreamingRoute {
  const { protocol, hostname, port, pathname, search } = parseStreamingUrl(text);
  const isTls = protocol === "https:";
  return {
    endpoint: {
      host: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (isTls ? 443 : 80) : Number(port),
      tls: isTls ? tls : undefined,
    },
    path: `${pathname}${search}`,
  };
}
