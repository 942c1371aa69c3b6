import type { Readable } from "node:stream";
import { UpstreamError } from "../net/upstream-error.ts";
import { contain } from "../observability/faults.ts";
import type { HttpDownstream } from "./http-downstream.ts";

/**
 * Fails with "request-timeout" when no byte of a request's body has come for so long, and no answer has begun. A body without a declared length may be
 * one half of a conversation, where silence is no fault. The returned function ends the watch.
 */
export function watchBody(
  downstream: HttpDownstream,
  timeoutMs: number | undefined,
  onSilent: (error: UpstreamError) => void,
): (() => void) | undefined {
  if (timeoutMs === undefined || downstream.isChunked || downstream.isBodyComplete) return undefined;
  return watchForSilence(downstream.body, timeoutMs, () => {
    if (downstream.hasResponded) return;
    onSilent(new UpstreamError("request-timeout", "the request's body did not come"));
  });
}

/**
 * Calls `onSilent` when no byte of a body has come for so long although there was room for it; to be called when the body is being piped.
 * The returned function ends the watch, as the body's end does.
 */
function watchForSilence(body: Readable, timeoutMs: number, onSilent: () => void): () => void {
  const timer = setTimeout(() => {
    // Whoever takes the body is slow, not who sends it.
    if (body.isPaused()) timer.refresh();
    else {
      stop();
      contain("exchange", onSilent, (error) => body.destroy(error as Error));
    }
  }, timeoutMs);
  const heard = (): void => void timer.refresh();
  const stop = (): void => {
    clearTimeout(timer);
    body.off("data", heard).off("end", stop).off("close", stop);
  };
  body.on("data", heard).once("end", stop).once("close", stop);
  return stop;
}
