import type { Readable } from "node:stream";

/**
 * Calls `onSilent` when no byte of a body has come for so long although there was room for it; to be called when the body is being piped.
 * The returned function ends the watch, as the body's end does.
 */
export function watchForSilence(body: Readable, timeoutMs: number, onSilent: () => void): () => void {
  const timer = setTimeout(() => {
    // Whoever takes the body is slow, not who sends it.
    if (body.isPaused()) timer.refresh();
    else {
      stop();
      onSilent();
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
