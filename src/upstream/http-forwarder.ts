import type { IncomingMessage, ServerResponse } from "node:http";
import type { ForwardExchangeOptions, ForwardOptions } from "./forward-options.ts";
import type { HttpDownstream } from "./http-downstream.ts";
import { HttpExchange } from "./http-exchange.ts";
import { Http1Downstream } from "./http1-downstream.ts";
import type { UpstreamError } from "./upstream-error.ts";

export interface ForwardHttpOptions extends ForwardOptions {
  /** Writes the answer where there is no response to forward. Nothing has been sent to the client yet. */
  respondError(error: UpstreamError, response: ServerResponse): void;
}

/**
 * Forwards one HTTP/1.x exchange, streaming both ways: header lines in their order, case and number, trailers, interim
 * responses, back-pressure. Whoever leaves early takes the other side along; a response that the upstream cuts short
 * never ends cleanly. Resolves when the exchange is over, whatever its outcome; never rejects.
 */
export function forwardHttp(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardHttpOptions,
): Promise<void> {
  return forwardExchange(new Http1Downstream(request, response), {
    ...options,
    respondError: (error) => options.respondError(error, response),
  });
}

/** The same for a client of any version of HTTP. */
export function forwardExchange(downstream: HttpDownstream, options: ForwardExchangeOptions): Promise<void> {
  return new Promise((resolve) => {
    const exchange = new HttpExchange(downstream, options);
    let isOver = false;
    downstream.onClose(() => {
      isOver = true;
      exchange.clientGone();
      resolve();
    });
    if (!isOver) exchange.start();
  });
}
