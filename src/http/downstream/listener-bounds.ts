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

/**
 * Listeners that parts of the gateway add to one exchange. Node warns of a leak beyond this number.
 */
export const EXPECTED_LISTENERS = 32;
