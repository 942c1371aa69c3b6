import type { Timeouts } from "../config/sections/timeouts.ts";
import type { BodyTimeouts, ForwardOptions } from "../http/upstream/forward-options.ts";

/** Within which an exchange with an API server ends, and each side of it owes its bytes. */
export function exchangeTimesOf(
  target: string,
  timeouts: Timeouts,
): BodyTimeouts & Pick<ForwardOptions, "responseHeaderTimeoutMs" | "exchangeTimeoutMs"> {
  const { responseHeaderTimeoutMs, ...body } = unlimitedTimesOf(timeouts);
  return hasNoTimeout(target)
    ? { responseHeaderTimeoutMs, ...body }
    : { exchangeTimeoutMs: timeouts.apiServerRequestMs, ...body };
}

/** The same for an exchange that may last: a watch, a followed log, and all that a kubelet answers (profiles take as long as is asked). */
export function unlimitedTimesOf({
  requestBodyMs,
  streamIdleMs,
  idleMs,
}: Timeouts): BodyTimeouts & Pick<ForwardOptions, "responseHeaderTimeoutMs"> {
  return {
    responseHeaderTimeoutMs: idleMs,
    bodySilenceTimeoutMs: requestBodyMs,
    streamIdleTimeoutMs: streamIdleMs,
    idleTimeoutMs: idleMs,
  };
}

/** By its URL, as kube-apiserver's long-running check: `watch=true`, `follow=true`, and paths below a version's `/watch/`. */
export function isLongRunning(url: string): boolean {
  return /[?&](watch|follow)=(true|1)(&|$)/.test(url) || /^\/apis?\/[^?]*\/watch\//.test(url);
}

const SILENT_SUBRESOURCE =
  /^\/api\/v1\/(?:namespaces\/[^/?]+\/(?:pods|services)|nodes)\/[^/?]+\/(?:proxy|log)(?:[/?]|$)/;

/** The requests that kube-apiserver's own time-out leaves alone: those above, and the subresources `proxy` and `log`, whose heads may wait for a pod. */
function hasNoTimeout(url: string): boolean {
  return isLongRunning(url) || SILENT_SUBRESOURCE.test(url);
}
