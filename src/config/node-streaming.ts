import { notAmong, type Section } from "./section.ts";

/**
 * Which WebSocket requests pass through to a node. `auto`: where it declares ExtendWebSocketsToKubelet. `websocket`: as if it declared
 * it, for kubelets that have the feature and no longer say so. `spdy`: never. `websocket-only`: nothing but WebSocket v5 and the tunnel
 * reaches the node, so that every other request is bridged onto them.
 */
export const STREAMING_MODES = ["auto", "websocket", "spdy", "websocket-only"] as const;
export type StreamingMode = (typeof STREAMING_MODES)[number];

/** What a node's annotation of this name holds: a StreamingMode. */
export const STREAMING_ANNOTATION = "sluice.dev/streaming";

export interface NodeStreaming {
  /** For nodes that neither `nodes` nor their annotation speaks about. */
  readonly mode: StreamingMode;
  /** By node name; stands above the annotation, which whoever may write Node objects writes. */
  readonly nodes: ReadonlyMap<string, StreamingMode>;
  /** A path that failed is left out for this long; twice as long after each further failure, up to the second value. */
  readonly retryFailedPathMs: number;
  readonly maxRetryFailedPathMs: number;
}

export interface NodeCircuit {
  /** Dials in a row that must fail before a node counts as dead. */
  readonly failures: number;
  /** A dead node is tried again after this long, by one session; twice as long after each failure, up to the second value. */
  readonly retryMs: number;
  readonly maxRetryMs: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const PAUSE = { min: 100, max: 24 * 60 * MINUTE };

export function readNodeStreaming(section: Section): NodeStreaming {
  const nodes = section.section("nodes");
  const modes = nodes.entries().flatMap(([name, value]): [string, StreamingMode][] => {
    if (isStreamingMode(value)) return [[name, value]];
    nodes.problem(
      name,
      typeof value === "string" ? (notAmong(value, STREAMING_MODES) ?? "") : "must be a string",
    );
    return [];
  });
  const streaming = {
    mode: section.choice("mode", "auto", STREAMING_MODES),
    nodes: new Map(modes),
    ...readPauses(section, "retryFailedPath", "maxRetryFailedPath", MINUTE, 30 * MINUTE),
  };
  section.finish();
  return {
    mode: streaming.mode,
    nodes: streaming.nodes,
    retryFailedPathMs: streaming.firstMs,
    maxRetryFailedPathMs: streaming.longestMs,
  };
}

export function readNodeCircuit(section: Section): NodeCircuit {
  const failures = section.count("failures", 3, { min: 1, max: 1_000 });
  const { firstMs, longestMs } = readPauses(section, "retry", "maxRetry", 5 * SECOND, MINUTE);
  section.finish();
  return { failures, retryMs: firstMs, maxRetryMs: longestMs };
}

export function isStreamingMode(value: unknown): value is StreamingMode {
  return STREAMING_MODES.some((mode) => mode === value);
}

function readPauses(
  section: Section,
  first: string,
  longest: string,
  firstDefaultMs: number,
  longestDefaultMs: number,
): { firstMs: number; longestMs: number } {
  const firstMs = section.durationMs(first, firstDefaultMs, PAUSE);
  const longestMs = section.durationMs(longest, Math.max(longestDefaultMs, firstMs), PAUSE);
  if (longestMs < firstMs) section.problem(longest, `must not be shorter than ${first}`);
  return { firstMs, longestMs };
}
