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

/**
 * Before the answer, fails with "request-timeout" if the client stalls its body, or with
 * "response-timeout" if the upstream does not take it. Returns a function that stops watching.
 */
export function watchBody(
  downstream: HttpDownstream,
  { bodySilenceTimeoutMs, streamIdleTimeoutMs }: BodyTimeouts,
  onSilent: (error: UpstreamError) => void,
): (() => void) | undefined {
  const silenceMs = downstream.isChunked ? streamIdleTimeoutMs : bodySilenceTimeoutMs;
  if (silenceMs === undefined || downstream.isBodyComplete) return undefined;
  const { body } = downstream;
  const periodMs = Math.min(silenceMs, streamIdleTimeoutMs ?? silenceMs);
  let silentMs = 0;
  let pausedMs = 0;
  const timer = setTimeout(() => {
    if (downstream.hasResponded) return stop();
    if (body.isPaused()) pausedMs += periodMs;
    else silentMs += periodMs;
    const isUpstreamStalled = pausedMs >= (streamIdleTimeoutMs ?? Number.POSITIVE_INFINITY);
    if (!isUpstreamStalled && silentMs < silenceMs) {
      timer.refresh();
      return;
    }
    stop();
    contain(
      "exchange",
      () => onSilent(overdueError(downstream)),
      (fault) => void body.destroy(fault as Error),
    );
  }, periodMs);
  const heard = (): void => {
    silentMs = pausedMs = 0;
    timer.refresh();
  };
  const stop = (): void => {
    clearTimeout(timer);
    body.off("data", heard).off("end", stop).off("close", stop);
  };
  body.on("data", heard).once("end", stop).once("close", stop);
  return stop;
}
