import { parseStreamingUrl } from "../../cri/streaming-url.ts";
import type { UpstreamEndpoint } from "../../net/dial.ts";
import type { UpstreamTls } from "../../net/tls.ts";

/** Where a runtime's streaming URL leads. The path holds a token: it is good for one request, and never shown. */
export interface StreamingRoute {
  readonly endpoint: UpstreamEndpoint;
  readonly path: string;
}

/** Throws StatusError 500 for a URL that cannot be used. */
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
