// src/http: HTTP to upstreams and to clients: exchanges, forwarding, pools, proxies on the way,
// header hygiene

import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { contain } from "@sluice/client/internal/observability/faults";
import type { ForwardExchangeOptions } from "./forward-options.ts";
import { HttpExchange } from "./http-exchange.ts";

/**
 * Forwards one exchange to an HTTP/1.1 upstream, with back-pressure, unchanged header lines, trailers
 * and interim responses. If one side leaves, closes the other. Resolves at the end; never rejects.
 */
export function forwardExchange(downstream: HttpDownstream, options: ForwardExchangeOptions): Promise<void> {
  return new Promise((resolve) => startExchange(downstream, options, resolve));
}

/** The same without a promise, for many exchanges. Calls `onEnd` once, immediately if the client has left. */
export function startExchange(
  downstream: HttpDownstream,
  options: ForwardExchangeOptions,
  onEnd: () => void,
): void {
  const exchange = new HttpExchange(downstream, options);
  const onFailure = (error: unknown): void => exchange.onFault(error);
  const { exchangeTimeoutMs } = options;
  const overdue = (): void => contain("exchange", () => exchange.onTimeout(), onFailure);
  const timer = exchangeTimeoutMs === undefined ? undefined : setTimeout(overdue, exchangeTimeoutMs).unref();
  let isOver = false;
  downstream.onClose(() => {
    // Several events may report the same end.
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    exchange.clientGone();
    onEnd();
  });
  if (isOver) return;
  downstream.contain("exchange", onFailure);
  contain("exchange", () => exchange.send(), onFailure);
}
