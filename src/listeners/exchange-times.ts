import { isTrue } from "../api/read-only-server/label-selector.ts";
import type { Timeouts } from "../config/sections/timeouts.ts";
import { requestUrlOf } from "../http/request-url.ts";
import type { BodyTimeouts, ForwardOptions } from "../http/upstream/forward-options.ts";

/** Timeouts for an exchange with an API server, and for the bytes that each side has to send. */
export function exchangeTimesOf(
  target: string,
  timeouts: Timeouts,
): BodyTimeouts & Pick<ForwardOptions, "responseHeaderTimeoutMs" | "exchangeTimeoutMs"> {
  const { responseHeaderTimeoutMs, ...body } = unlimitedTimesOf(timeouts);
  return hasNoTimeout(target)
    ? { responseHeaderTimeoutMs, ...body }
    : { exchangeTimeoutMs: timeouts.apiServerRequestMs, ...body };
}

/**
 * The same timeouts without a total limit: for watches, followed logs, and everything from a
 * kubelet, whose profiles may take any time.
 */
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

/**
 * Decides by the URL, like kube-apiserver's long-running check: `watch`, `follow`, and paths below a
 * version's `/watch/`. A view of a session lasts as long as the session.
 */
export function isLongRunning(url: string): boolean {
  return (
    hasLastingQuery(url) ||
    /^\/apis?\/[^?]*\/watch\//.test(url) ||
    isOutputPath(url.split("?", 1)[0] as string)
  );
}

/** Most queries contain neither word, nor an escaped letter. */
const MAY_LAST = /watch|follow|%[4-7]/;

function hasLastingQuery(target: string): boolean {
  const query = target.indexOf("?");
  if (query === -1 || !MAY_LAST.test(target)) return false;
  const { searchParams } = requestUrlOf(`/${target.slice(query)}`);
  return isTrue(searchParams.get("watch")) || isTrue(searchParams.get("follow"));
}

const ATTACH_PATH = /^\/apis\/sluice\.dev\/[^/]+\/namespaces\/[^/]+\/streamingsessions\/[^/]+\/attach\/?$/;
const OUTPUT_PATH = /^\/apis\/sluice\.dev\/[^/]+\/namespaces\/[^/]+\/streamingsessions\/[^/]+\/output\/?$/;

/** True for the path of a session's output. */
export function isOutputPath(path: string): boolean {
  return OUTPUT_PATH.test(path);
}

/** True for the path on which a session is joined. */
export function isAttachPath(path: string): boolean {
  return ATTACH_PATH.test(path);
}

const SILENT_SUBRESOURCE =
  /^\/api\/v1\/(?:namespaces\/[^/?]+\/(?:pods|services)|nodes)\/[^/?]+\/(?:proxy|log)(?:[/?]|$)/;

/**
 * Requests that kube-apiserver serves without a timeout: those above, and the subresources `proxy`
 * and `log`, whose heads may wait for a pod.
 */
function hasNoTimeout(url: string): boolean {
  return isLongRunning(url) || SILENT_SUBRESOURCE.test(url);
}
