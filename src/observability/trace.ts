/** The parts of a request that have a span of their own. */
export type TraceStep = "authenticate" | "authorize" | "locate" | "policy" | "dial" | "upgrade" | "session";

export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

export interface TraceSpan {
  set(attributes: TraceAttributes): void;
  /** `error`: it failed; its class or code is recorded, never its text. */
  end(error?: unknown): void;
}

/** The trace of one request, from its head to its answer. Spans of its steps may end later. */
export interface RequestTrace {
  /** `traceparent` and `tracestate` for upstreams. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly traceId: string;
  /** Whether it was sampled: a collector gets it. */
  readonly isRecorded: boolean;
  /** What it turned out to be: `exec`. No part of it is a client's choice. */
  rename(name: string): void;
  set(attributes: TraceAttributes): void;
  begin(step: TraceStep): TraceSpan;
  /** Only the first call counts. 0: the client left before there was an answer. */
  end(status: number): void;
}

/** A request as it came; its query is not part of it. */
export interface TracedRequest {
  readonly method: string;
  readonly path: string;
  readonly scheme: "http" | "https";
  readonly clientAddress: string;
  /** Values of its `traceparent` and `tracestate` lines. */
  readonly traceparent: readonly string[];
  readonly tracestate: readonly string[];
}

export interface Tracing {
  begin(request: TracedRequest): RequestTrace;
}

/** Runs a step within its span. */
export function traced<T>(trace: RequestTrace | undefined, step: TraceStep, run: () => T): T {
  if (trace === undefined) return run();
  const span = trace.begin(step);
  try {
    const result = run();
    if (result instanceof Promise) {
      void result.then(
        () => span.end(),
        (error: unknown) => span.end(error ?? new Error()),
      );
    } else span.end();
    return result;
  } catch (error) {
    span.end(error ?? new Error());
    throw error;
  }
}
