import type { PathFailure } from "./node-capability.ts";

/**
 * Messages from kubelets, runtimes and hops that refuse the WebSocket, not the request. A kubelet
 * without the tunnel takes it for legacy port-forward, which names its port in the query.
 */
const ABOUT_THE_UPGRADE =
  /websocket|upgrade|handshake|subprotocol|query parameter "port" is required|error dialing backend|dial tcp|server gave HTTP response|unsupported protocol scheme|malformed HTTP/i;

/** Failures of a command or container; runtimes choose the text, which may contain anything. */
const ABOUT_THE_COMMAND = /error executing command in container|container (?:is|not)|container "/i;

/**
 * Refusals without a reason: x/net/websocket answers unknown subprotocols with a bare 403; muxes
 * and hops name the status, hops in HTML.
 */
const BARE = /^(?:\d{3} ?)?(?:bad request|forbidden|not found|page not found)?\.?$|^</i;

/**
 * Why a node refused a WebSocket path. Undefined if it would refuse another path as well, or is
 * busy. `text` is the start of the body.
 */
export function refusedPath(status: number, text: string): PathFailure | undefined {
  switch (status) {
    case 400:
      return BARE.test(text.trim()) || ABOUT_THE_UPGRADE.test(text) ? "bad-request" : undefined;
    case 403:
      // Includes kubelets whose RBAC grants `create` on nodes/proxy, for POST, but not `get`.
      return "forbidden";
    case 404:
      // This text concerns routes and tokens; pods and containers have their own messages.
      return BARE.test(text.trim()) ? "not-found" : undefined;
    case 405:
      return text.includes("Debug endpoints are disabled") ? undefined : "method-not-allowed";
    case 426:
      return "upgrade-required";
    case 501:
      return "not-implemented";
    case 500:
      return isRuntimeUnreached(text) ? "runtime-failed" : undefined;
    default:
      return undefined;
  }
}

/** Whether the failure says that the kubelet could not reach its runtime over the chosen path. */
export function isRuntimeUnreached(text: string): boolean {
  return ABOUT_THE_UPGRADE.test(text) && !ABOUT_THE_COMMAND.test(text);
}
