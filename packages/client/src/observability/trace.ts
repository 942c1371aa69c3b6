/** The parts of a request with their own spans. */
type TraceStep = "authenticate" | "authorize" | "locate" | "policy" | "dial" | "upgrade" | "session";

export type TraceAttributes = Readonly<Record<string, string | number | boolean>>;

export interface TraceSpan {
  set(attributes: TraceAttributes): void;
  /** `error` marks a failure; its class or code is recorded, never its text. */
  end(error?: unknown): void;
}

/** The trace of one request, from its head to its answer. Its steps' spans may end later. */
export interface RequestTrace {
  /** `traceparent` and `tracestate` for upstreams. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly traceId: string;
  /** Whether the trace is sampled, and so sent to a collector. */
  readonly isRecorded: boolean;
  /** Sets the request's final name: `exec`. Clients must not choose any part of it. */
  rename(name: string): void;
  set(attributes: TraceAttributes): void;
  begin(step: TraceStep): TraceSpan;
  /** Only the first call counts. 0 means that the client left before an answer. */
  end(status: number): void;
}

/** A request as received, without its query. */
export interface TracedRequest {
  readonly method: string;
  readonly path: string;
  readonly scheme: "http" | "https";
  readonly clientAddress: string;
  /** The values of its `traceparent` and `tracestate` lines. */
  readonly traceparent: readonly string[];
  readonly tracestate: readonly string[];
}

export interface Tracing {
  begin(request: TracedRequest): RequestTrace;
}

/** Runs a step inside its span. */
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
