import type { Timeouts } from "../config/timeouts.ts";
import type { ForwardOptions } from "../http/forward-options.ts";

/** Within which each side of an exchange with an API server owes its bytes. */
export function exchangeTimesOf(
  target: string,
  { apiServerResponseMs, requestBodyMs, streamIdleMs }: Timeouts,
): Pick<ForwardOptions, "responseHeaderTimeoutMs" | "bodySilenceTimeoutMs" | "streamIdleTimeoutMs"> {
  return {
    responseHeaderTimeoutMs: hasNoResponseTimeout(target) ? undefined : apiServerResponseMs,
    bodySilenceTimeoutMs: requestBodyMs,
    streamIdleTimeoutMs: streamIdleMs,
  };
}

/** By its URL, as kube-apiserver's long-running check: `watch=true`, `follow=true`, and paths below a version's `/watch/`. */
export function isLongRunning(url: string): boolean {
  return /[?&](watch|follow)=(true|1)(&|$)/.test(url) || /^\/apis?\/[^?]*\/watch\//.test(url);
}

const SILENT_SUBRESOURCE =
  /^\/api\/v1\/(?:namespaces\/[^/?]+\/(?:pods|services)|nodes)\/[^/?]+\/(?:proxy|log)(?:[/?]|$)/;

/** The requests that kube-apiserver's own time-out leaves alone: those above, and the subresources `proxy` and `log`, whose heads may wait for a pod. */
function hasNoResponseTimeout(url: string): boolean {
  return isLongRunning(url) || SILENT_SUBRESOURCE.test(url);
}
