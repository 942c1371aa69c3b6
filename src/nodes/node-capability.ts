import type { NodeEndpoint } from "../cluster/locate.ts";
import {
  isStreamingMode,
  type NodeStreaming,
  STREAMING_ANNOTATION,
  type StreamingMode,
} from "../config/sections/kubelet.ts";

/** A kubelet with this feature speaks WebSocket v5 and the tunnel itself (KEP-4006, 1.36). */
const EXTEND_WEBSOCKETS_TO_KUBELET = "ExtendWebSocketsToKubelet";

/**
 * The WebSocket paths to a node: v5 for exec and attach, and the tunnel. Each can fail by itself.
 */
export const WEBSOCKET_PATHS = ["command", "tunnel"] as const;
export type WebSocketPath = (typeof WEBSOCKET_PATHS)[number];

/** The node's properties that decide its path. */
export interface NodeCapability {
  /** What the kubelet declares, which does not include its runtime. */
  readonly declaresWebSocket: boolean;
  readonly mode: StreamingMode;
  /** Paths that failed recently and are avoided until their retry is due. */
  readonly avoidedPaths: readonly WebSocketPath[];
}

/** How a path to a node failed. A closed list, because it is a metric label. */
const PATH_FAILURES = [
  "bad-request",
  "forbidden",
  "not-found",
  "method-not-allowed",
  "upgrade-required",
  "not-implemented",
  "runtime-failed",
  "no-answer",
  "wrong-answer",
  "failed-after-upgrade",
] as const;

/**
 * Messages from kubelets, runtimes and hops that refuse the WebSocket, not the request. A kubelet
 * without the tunnel takes it for legacy port-forward, which names its port in the query.
 */
const ABOUT_THE_UPGRADE =
  /websocket|upgrade|handshake|subprotocol|query parameter "port" is required|error dialing backend|dial tcp|server gave HTTP response|unsupported protocol scheme|malformed HTTP/i;

/** Failures of a command or container. The runtime chooses the text, so it may contain anything. */
const ABOUT_THE_COMMAND = /error executing command in container|container (?:is|not)|container "/i;

/**
 * Refusals without a reason: x/net/websocket answers unknown subprotocols with a bare 403; muxes
 * and hops name the status, hops in HTML.
 */
const BARE = /^(?:\d{3} ?)?(?:bad request|forbidden|not found|page not found)?\.?$|^</i;
export type PathFailure = (typeof PATH_FAILURES)[number];

/** A node's mode and its source. */
interface ChosenMode {
  readonly mode: StreamingMode;
  readonly source: string;
}

/**
 * Precedence: the configuration for this node, the node's annotation, the configuration for all
 * nodes.
 */
export function modeOf({ name, streaming }: NodeEndpoint, { mode, nodes }: NodeStreaming): ChosenMode {
  const configured = nodes.get(name);
  if (configured !== undefined) return { mode: configured, source: "configuration of this node" };
  if (isStreamingMode(streaming)) return { mode: streaming, source: `annotation ${STREAMING_ANNOTATION}` };
  // A wrong annotation must not end a node's sessions.
  const ignored = streaming === undefined ? "" : `, annotation ${STREAMING_ANNOTATION} has no known value`;
  return { mode, source: `configuration of all nodes${ignored}` };
}

export function declaresWebSocket({ declaredFeatures }: NodeEndpoint): boolean {
  return declaredFeatures.includes(EXTEND_WEBSOCKETS_TO_KUBELET);
}

type PathPauses = Pick<NodeStreaming, "retryFailedPathMs" | "maxRetryFailedPathMs">;

/** The record of one path to one node. Times are milliseconds of a monotonic clock. */
export class PathMemory {
  readonly #pauses: PathPauses;
  successes = 0;
  failures = 0;
  lastFailure: PathFailure | undefined;
  #pauseMs = 0;
  #avoidedUntilMs = 0;

  constructor(pauses: PathPauses) {
    this.#pauses = pauses;
  }

  succeeded(): void {
    this.successes += 1;
    this.#pauseMs = 0;
    this.#avoidedUntilMs = 0;
  }

  /**
   * Concurrent sessions that fail together count as one failure: the pause grows only after it has
   * ended.
   */
  failed(nowMs: number, how: PathFailure): void {
    this.failures += 1;
    this.lastFailure = how;
    if (this.isAvoided(nowMs)) return;
    const { retryFailedPathMs, maxRetryFailedPathMs } = this.#pauses;
    this.#pauseMs =
      this.#pauseMs === 0 ? retryFailedPathMs : Math.min(this.#pauseMs * 2, maxRetryFailedPathMs);
    this.#avoidedUntilMs = nowMs + this.#pauseMs;
  }

  isAvoided(nowMs: number): boolean {
    return nowMs < this.#avoidedUntilMs;
  }

  /** The time until the path may be used again; 0 if it may be used now. */
  retryInMs(nowMs: number): number {
    return Math.max(0, this.#avoidedUntilMs - nowMs);
  }
}

/**
 * Why a node refused a WebSocket path. Undefined if it would refuse another path as well, or is
 * busy. `text` is the start of the body.
 */
export function refusedPath(status: number, text: string): PathFailure | undefined {
  switch (status) {
    case 400:
      return BARE.test(text.trim()) || ABOUT_THE_UPGRADE.test(text) ? "bad-request" : undefined;
    case 403:
      // Also the answer of kubelets whose RBAC grants `create` on nodes/proxy, for POST, but not
      // `get`.
      return "forbidden";
    case 404:
      // This text is about routes and tokens; pods and containers have their own messages.
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
