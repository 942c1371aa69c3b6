import type { PathFailure } from "./node-capability.ts";

/**
 * Texts of kubelets, runtimes and hops that refuse the WebSocket, not the request. A kubelet without
 * the tunnel takes one for legacy port-forward, which names its port in the query.
 */
const ABOUT_THE_UPGRADE =
  /websocket|upgrade|handshake|subprotocol|query parameter "port" is required|error dialing backend|dial tcp|server gave HTTP response|unsupported protocol scheme|malformed HTTP/i;

/** Failures of a command or container, whose words are the runtime's and may contain anything. */
const ABOUT_THE_COMMAND = /error executing command in container|container (?:is|not)|container "/i;

/**
 * A refusal that says nothing of the request: x/net/websocket answers a bare 403 to subprotocols that it does not know, muxes and hops
 * name the status, hops in HTML.
 */
const BARE = /^(?:\d{3} ?)?(?:bad request|forbidden|not found|page not found)?\.?$|^</i;

/**
 * Why a node refused the path of a WebSocket upgrade; undefined where another path would be refused as
 * well, or the node is busy. `text`: the beginning of the body.
 */
export function refusedPath(status: number, text: string): PathFailure | undefined {
  switch (status) {
    case 400:
      return BARE.test(text.trim()) || ABOUT_THE_UPGRADE.test(text) ? "bad-request" : undefined;
    case 403:
      // Also a kubelet whose RBAC grants us `create` on nodes/proxy, which POST asks for, and not `get`.
      return "forbidden";
    case 404:
      // Routes and tokens are unknown in these words; pods and containers have sentences of their own.
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

/** Whether a failure's text says that a kubelet did not get through to its runtime over the path that it chose. */
export function isRuntimeUnreached(text: string): boolean {
  return ABOUT_THE_UPGRADE.test(text) && !ABOUT_THE_COMMAND.test(text);
}
