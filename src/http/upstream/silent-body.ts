import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { contain } from "@sluice/client/internal/observability/faults";
import type { BodyTimeouts } from "./forward-options.ts";

/** The error for an exchange that timed out, by the awaited side. */
export function overdueError({ isBodyComplete, body }: HttpDownstream): UpstreamError {
  if (isBodyComplete)
    return new UpstreamError("response-timeout", "net/http: timeout awaiting response headers");
  return body.isPaused()
    ? new UpstreamError("response-timeout", "the upstream does not take the request's body")
    : new UpstreamError("request-timeout", "the request's body did not come");
}

interface BodyWatch {
  /** Call for each part of the body. */
  heard(): void;
  /** Call at the exchange's end, or before. */
  stop(): void;
}

/**
 * Before the answer, fails with "request-timeout" if the client stalls its body, or with
 * "response-timeout" if the upstream does not take it.
 */
export function watchBody(
  downstream: HttpDownstream,
  { bodySilenceTimeoutMs, streamIdleTimeoutMs }: BodyTimeouts,
  onSilent: (error: UpstreamError) => void,
): BodyWatch | undefined {
  const silenceMs = downstream.isChunked ? streamIdleTimeoutMs : bodySilenceTimeoutMs;
  if (silenceMs === undefined || downstream.isBodyComplete) return undefined;
  const { body } = downstream;
  const periodMs = Math.min(silenceMs, streamIdleTimeoutMs ?? silenceMs);
  let silentMs = 0;
  let pausedMs = 0;
  let isOver = false;
  const timer = setTimeout(() => {
    isOver ||= downstream.hasResponded || body.readableEnded || body.destroyed;
    if (isOver) return;
    if (body.isPaused()) pausedMs += periodMs;
    else silentMs += periodMs;
    const isUpstreamStalled = pausedMs >= (streamIdleTimeoutMs ?? Number.POSITIVE_INFINITY);
    if (!isUpstreamStalled && silentMs < silenceMs) {
      timer.refresh();
      return;
    }
    isOver = true;
    contain(
      "exchange",
      () => onSilent(overdueError(downstream)),
      (fault) => void body.destroy(fault as Error),
    );
  }, periodMs);
  return {
    heard: () => {
      if (isOver) return;
      silentMs = pausedMs = 0;
      timer.refresh();
    },
    stop: () => {
      isOver = true;
      clearTimeout(timer);
    },
  };
}
