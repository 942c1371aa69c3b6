import { shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { choice } from "@sluice/client/internal/config/fields";
import { notAmong, type Section } from "@sluice/client/internal/config/section";
import { count, duration } from "../number-fields.ts";
import { map } from "../section-fields.ts";

const MODES = ["auto", "websocket", "spdy", "websocket-only"] as const;
/** Which WebSocket requests pass through to a node. */
export type StreamingMode = (typeof MODES)[number];

/** The annotation that sets a node's StreamingMode. */
export const STREAMING_ANNOTATION = "sluice.dev/streaming";

/**
 * The annotation with the features of the Sluice in front of a node's kubelet; kubelets do not
 * overwrite it.
 */
export const PUBLISHED_FEATURES_ANNOTATION = "sluice.dev/published-features";

const PAUSE = { from: "100ms", to: "24h" } as const;

const streamingFields = table({
  mode: choice(
    "Which WebSocket requests pass through to a node. `auto`: all if the node declares ExtendWebSocketsToKubelet; `websocket`: all; `spdy`: none; `websocket-only`: all, and SPDY is bridged to WebSocket.",
    MODES,
    { default: "auto" },
  ),
  nodes: map(
    `Modes by node name. Other nodes use their annotation \`${STREAMING_ANNOTATION}\`, or \`mode\`.`,
    { type: "map of modes", values: { enum: [...MODES, null] }, parse: modeOf },
  ),
  retryFailedPath: duration(
    "How long a failed path is not used; doubles with each further failure. Past it the path is tried again.",
    { default: "1m", ...PAUSE },
  ),
  maxRetryFailedPath: duration("The longest such pause; at least `retryFailedPath`.", {
    default: "30m",
    ...PAUSE,
  }),
});

export const nodeStreaming = shaped(streamingFields, ({ nodes, ...values }, section) => ({
  ...values,
  nodes: new Map(Object.entries(nodes)),
  maxRetryFailedPathMs: longestOf(
    section,
    ["retryFailedPath", values.retryFailedPathMs],
    ["maxRetryFailedPath", values.maxRetryFailedPathMs],
  ),
}));

export type NodeStreaming = ValueOf<typeof nodeStreaming>;

const circuitFields = table({
  failures: count("Failed dials in a row after which sessions to the node get 503 at once.", {
    default: 3,
    from: 1,
    to: 1_000,
  }),
  retry: duration(
    "How long sessions then get 503. Doubles with each failure; at most 1 s after a refused connection. Past it one session tries the node.",
    {
      default: "5s",
      ...PAUSE,
    },
  ),
  maxRetry: duration("The longest such pause; at least `retry`.", { default: "1m", ...PAUSE }),
});

export const nodeCircuit = shaped(circuitFields, (values, section) => ({
  ...values,
  maxRetryMs: longestOf(section, ["retry", values.retryMs], ["maxRetry", values.maxRetryMs]),
}));

export type NodeCircuit = ValueOf<typeof nodeCircuit>;

export function isStreamingMode(value: unknown): value is StreamingMode {
  return MODES.some((mode) => mode === value);
}

function modeOf(value: unknown): StreamingMode {
  if (isStreamingMode(value)) return value;
  throw new RangeError(typeof value === "string" ? notAmong(value, MODES) : "must be a string");
}

/** The longest pause; a longer first pause raises the default. */
function longestOf(
  section: Section,
  [first, firstMs]: readonly [string, number],
  [longest, longestMs]: readonly [string, number],
): number {
  if (longestMs < firstMs && section.has(longest))
    section.problem(longest, `must not be shorter than ${first}`);
  return Math.max(firstMs, longestMs);
}
