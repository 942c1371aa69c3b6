import type { Context, Span, SpanContext, SpanOptions, Tracer, TraceState } from "@opentelemetry/api";
import type { ReadableSpan, Sampler, SpanProcessor } from "@opentelemetry/sdk-trace-base";
import { notInstalled } from "@sluice/client/internal/config/optional-package";
import { SLUICE_VERSION } from "@sluice/client/internal/config/version";
import type {
  RequestTrace,
  TraceAttributes,
  TracedRequest,
  TraceSpan,
  Tracing,
} from "@sluice/client/internal/observability/trace";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { TraceMetrics } from "./operations-metrics.ts";

/** W3C Trace Context section 3.2.2: version 00 has these four parts; a later one may have more. */
const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/**
 * Characters of a client's `tracestate`: vendors must propagate this many (section 3.3.1.1). Past
 * it the header is dropped.
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

/** Loads OpenTelemetry's packages, only if tracing is configured. */
async function packages() {
  const failed = notInstalled("@opentelemetry/sdk-trace-base", "tracing");
  const [api, sdk, otlp, resources] = await Promise.all([
    import("@opentelemetry/api").catch(notInstalled("@opentelemetry/api", "tracing")),
    import("@opentelemetry/sdk-trace-base").catch(failed),
    import("@opentelemetry/exporter-trace-otlp-http").catch(
      notInstalled("@opentelemetry/exporter-trace-otlp-http", "tracing"),
    ),
    import("@opentelemetry/resources").catch(notInstalled("@opentelemetry/resources", "tracing")),
  ]);
  return { api, sdk, otlp, resources };
}

type TracingSettings = NonNullable<GatewayConfiguration["tracing"]>;
type Packages = Awaited<ReturnType<typeof packages>>;

interface OpenTelemetry extends Tracing {
  /** Sends waiting spans, for at most the export's time-out. */
  stop(): Promise<void>;
}

/**
 * Exports spans to a collector over OTLP/HTTP. Throws NotInstalledError. Requests never wait for
 * the collector; beyond the bound, spans are dropped.
 */
export async function openTelemetry(
  settings: TracingSettings,
  metrics: TraceMetrics,
): Promise<OpenTelemetry> {
  const loaded = await packages();
  const { sdk, otlp, resources } = loaded;
  const exporter = new otlp.OTLPTraceExporter({ url: settings.endpoint, timeoutMillis: settings.timeoutMs });
  const batches = new sdk.BatchSpanProcessor(
    {
      export: (spans, done) =>
        exporter.export(spans, (result) => {
          metrics.spans(result.code === 0 ? "exported" : "failed", spans.length);
          done(result);
        }),
      shutdown: () => exporter.shutdown(),
    },
    {
      maxQueueSize: settings.maxQueuedSpans,
      maxExportBatchSize: Math.min(512, settings.maxQueuedSpans),
      exportTimeoutMillis: settings.timeoutMs,
    },
  );
  const provider = new sdk.BasicTracerProvider({
    resource: resources.resourceFromAttributes({
      "service.name": settings.serviceName,
      "service.version": SLUICE_VERSION,
      "process.pid": process.pid,
    }),
    sampler: samplerOf(settings, sdk),
    spanProcessors: [new CountedSpans(batches, metrics)],
  });
  const tracer = provider.getTracer("sluice", SLUICE_VERSION);
  return {
    begin: (request) => new OtelRequestTrace(request, tracer, loaded),
    stop: () => provider.shutdown().catch(() => {}),
  };
}

/**
 * Clients could fill the collector by their sampling flag or trace id, so their traces are sampled
 * at random. Child spans follow their request.
 */
function samplerOf({ samplePercent, followsClients }: TracingSettings, sdk: Packages["sdk"]): Sampler {
  const root = new sdk.TraceIdRatioBasedSampler(samplePercent / 100);
  if (followsClients) return new sdk.ParentBasedSampler({ root });
  const { RECORD_AND_SAMPLED, NOT_RECORD } = sdk.SamplingDecision;
  const drawn: Sampler = {
    shouldSample: () => ({
      decision: Math.random() * 100 < samplePercent ? RECORD_AND_SAMPLED : NOT_RECORD,
    }),
    toString: () => `Drawn{${samplePercent}}`,
  };
  return new sdk.ParentBasedSampler({ root, remoteParentSampled: drawn, remoteParentNotSampled: drawn });
}

/** Counts spans, to distinguish those that the bounded queue dropped from those sent. */
class CountedSpans implements SpanProcessor {
  readonly #next: SpanProcessor;
  readonly #metrics: TraceMetrics;

  constructor(next: SpanProcessor, metrics: TraceMetrics) {
    this.#next = next;
    this.#metrics = metrics;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    this.#metrics.spans("ended", 1);
    this.#next.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#next.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#next.shutdown();
  }
}

class OtelRequestTrace implements RequestTrace {
  readonly headers: RequestTrace["headers"];
  readonly #tracer: Tracer;
  readonly #api: Packages["api"];
  readonly #span: Span;
  readonly #context: Context;
  #hasEnded = false;

  constructor(request: TracedRequest, tracer: Tracer, { api }: Packages) {
    const { method, path, scheme, clientAddress } = request;
    this.#api = api;
    this.#tracer = tracer;
    const options: SpanOptions = {
      kind: api.SpanKind.SERVER,
      attributes: {
        "http.request.method": method,
        "url.path": path,
        "url.scheme": scheme,
        "client.address": clientAddress,
      },
    };
    this.#span = tracer.startSpan(method, options, this.#parentOf(request));
    this.#context = api.trace.setSpan(api.ROOT_CONTEXT, this.#span);
    const own = this.#span.spanContext();
    const state = own.traceState?.serialize() ?? "";
    const traceparent = ["traceparent", traceparentOf(own)] as const;
    this.headers = state === "" ? [traceparent] : [traceparent, ["tracestate", state]];
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get isRecorded(): boolean {
    return (this.#span.spanContext().traceFlags & this.#api.TraceFlags.SAMPLED) !== 0;
  }

  #parentOf({ traceparent, tracestate }: TracedRequest): Context {
    const { ROOT_CONTEXT, trace, createTraceState, isSpanContextValid } = this.#api;
    const remote: SpanContext | undefined = remoteContext(traceparent, tracestate, createTraceState);
    if (remote === undefined || !isSpanContextValid(remote)) return ROOT_CONTEXT;
    return trace.setSpanContext(ROOT_CONTEXT, remote);
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  set(attributes: TraceAttributes): void {
    this.#span.setAttributes(attributes);
  }

  begin(step: string): TraceSpan {
    const { SpanKind, SpanStatusCode } = this.#api;
    const isOutward = step === "dial" || step === "upgrade";
    const kind = isOutward ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const span = this.#tracer.startSpan(step, { kind }, this.#context);
    return {
      set: (attributes) => void span.setAttributes(attributes),
      end: (error) => {
        if (error !== undefined) {
          span.setAttribute("error.type", errorType(error));
          span.setStatus({ code: SpanStatusCode.ERROR });
        }
        span.end();
      },
    };
  }

  end(status: number): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    if (status !== 0) this.#span.setAttribute("http.response.status_code", status);
    if (status >= 500 || status === 0) {
      this.#span.setAttribute("error.type", status === 0 ? "client-gone" : String(status));
      if (status !== 0) this.#span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
    }
    this.#span.end();
  }
}

/** The error's code or class name: messages may quote peers' texts. */
function errorType(error: unknown): string {
  if (typeof error === "string") return error;
  if (!(error instanceof Error)) return "error";
  const { code } = error as { code?: unknown };
  return typeof code === "string" || typeof code === "number" ? String(code) : error.name;
}
