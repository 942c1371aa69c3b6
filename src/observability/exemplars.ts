import type { RequestTrace } from "@sluice/client/internal/observability/trace";

type Labels = Readonly<Record<string, string>>;

/** A bucket's observation and the trace that explains it. Plain data. */
export interface Exemplar {
  readonly bucket: string;
  readonly traceId: string;
  readonly value: number;
  /** Seconds since 1970. */
  readonly atSeconds: number;
}

/** Keeps the newest recorded trace for each bucket of a histogram. */
export class HistogramExemplars {
  readonly metric: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Map<number, Exemplar>>();

  constructor(metric: string, bounds: readonly number[]) {
    this.metric = metric;
    this.#bounds = bounds;
  }

  observe(labels: Labels, value: number, trace: RequestTrace | undefined): void {
    if (trace?.isRecorded !== true) return;
    const bound = this.#bounds.find((each) => value <= each) ?? Number.POSITIVE_INFINITY;
    const le = bound === Number.POSITIVE_INFINITY ? "+Inf" : String(bound);
    const key = keyOf(labels);
    const series = this.#series.get(key) ?? new Map<number, Exemplar>();
    this.#series.set(key, series);
    const bucket = bucketName(`${this.metric}_bucket`, { ...labels, le });
    series.set(bound, { bucket, traceId: trace.traceId, value, atSeconds: Date.now() / 1_000 });
  }

  remove(labels: Labels): void {
    this.#series.delete(keyOf(labels));
  }

  list(): Exemplar[] {
    return [...this.#series.values()].flatMap((series) => [...series.values()]);
  }
}

/** Independent of the labels' order. */
export function bucketName(sample: string, labels: Labels): string {
  return `${sample}{${keyOf(labels)}}`;
}

function keyOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.sort().join(",");
}
