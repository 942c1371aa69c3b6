import type { Http1Bounds } from "@sluice/client/internal/http/downstream/http1-server";
import type { Limits } from "../../config/sections/limits.ts";
import type { Timeouts } from "../../config/sections/timeouts.ts";

/** The limits of a listener for clients. */
export function boundsOfListener(
  limits: Pick<Limits, "maxRequestHeaderBytes" | "socketBufferBytes">,
  { handshakeMs, keepAliveMs }: Pick<Timeouts, "handshakeMs" | "keepAliveMs">,
): Http1Bounds {
  return {
    maxHeaderBytes: limits.maxRequestHeaderBytes,
    headMs: handshakeMs,
    keepAliveMs,
    bufferBytes: limits.socketBufferBytes,
  };
}

/** Parts of the gateway that follow one exchange to its end. Node warns of a leak past ten. */
export const MAX_FOLLOWERS = 32;
