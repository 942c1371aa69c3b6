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

/** Parts of the gateway that listen to one exchange until its end; past as many Node warns of a leak. */
export const EXPECTED_LISTENERS = 32;
