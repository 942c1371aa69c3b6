import type { SpanContext, TraceState } from "@opentelemetry/api";

/** W3C Trace Context section 3.2.2: version 00 has these four parts; a later one may have more. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/**
 * A client's `tracestate`, which vendors must propagate this far (section 3.3.1.1). Past it, it is
 * dropped.
 */
const MAX_STATE_CHARACTERS = 512;

/** The client's trace context; undefined if it sent none, or an invalid one (section 4.3). */
export function remoteContext(
  traceparent: readonly string[],
  tracestate: readonly string[],
  createTraceState: (text: string) => TraceState,
): SpanContext | undefined {
  const [line] = traceparent;
  const parts = traceparent.length === 1 ? TRACEPARENT.exec(line ?? "") : null;
  if (parts === null || (parts[1] === "00" && parts[5] !== undefined)) return undefined;
  const state = tracestate.join(",");
  return {
    traceId: parts[2] ?? "",
    spanId: parts[3] ?? "",
    traceFlags: Number.parseInt(parts[4] ?? "", 16) & 1,
    isRemote: true,
    ...(state !== "" && state.length <= MAX_STATE_CHARACTERS && { traceState: createTraceState(state) }),
  };
}

export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
}
