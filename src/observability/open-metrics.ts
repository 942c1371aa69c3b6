import type { RequestTrace } from "@sluice/client/internal/observability/trace";

export const TEXT_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";
export const OPEN_METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/**
 * Converts Prometheus' text to OpenMetrics with exemplars: a prom-client registry has one of the
 * formats, and merging workers loses exemplars. A bucket's newer exemplar counts.
 */
export function openMetricsOf(text: string, exemplars: readonly Exemplar[]): string {
  const types = new Map(
    Array.from(text.matchAll(/^# TYPE (\S+) (\S+)$/gm), ([, name = "", type = ""]) => [name, type]),
  );
  const ofBucket = new Map<string, Exemplar>();
  for (const exemplar of exemplars) {
    const other = ofBucket.get(exemplar.bucket);
    if (other === undefined || other.atSeconds <= exemplar.atSeconds) ofBucket.set(exemplar.bucket, exemplar);
  }
  const metrics = new Set(Array.from(ofBucket.keys(), (bucket) => bucket.slice(0, bucket.indexOf("{"))));
  const lines = text.split("\n").flatMap((line) => {
    if (line === "") return [];
    if (line.startsWith("# ")) return [headOf(line, types)];
    const [, sample = "", labels = ""] = /^(\w+)\{(.*)\} /.exec(line) ?? [];
    return [
      metrics.has(sample) ? withExemplar(line, ofBucket.get(bucketName(sample, labelsIn(labels)))) : line,
    ];
  });
  return `${lines.join("\n")}\n# EOF\n`;
}

/**
 * OpenMetrics names a counter without `_total`; if its samples lack the suffix, it is not a counter
 * there.
 */
function headOf(line: string, types: ReadonlyMap<string, string>): string {
  const [, keyword = "", name = "", rest = ""] = /^# (\w+) (\S+) ?(.*)$/.exec(line) ?? [];
  if (types.get(name) !== "counter") return line;
  const family = name.replace(/_total$/, "");
  return `# ${keyword} ${family} ${keyword === "TYPE" && family === name ? "unknown" : rest}`;
}

function withExemplar(line: string, exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return line;
  const { traceId, value, atSeconds } = exemplar;
  return `${line} # {trace_id="${traceId}"} ${value} ${atSeconds.toFixed(3)}`;
}

/** The values are ours or Kubernetes names; none contains a quote. */
function labelsIn(text: string): Record<string, string> {
  return Object.fromEntries(
    Array.from(text.matchAll(/\b(\w+)="([^"]*)"/g), ([, name = "", value = ""]) => [name, value]),
  );
}

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
function bucketName(sample: string, labels: Labels): string {
  return `${sample}{${keyOf(labels)}}`;
}

function keyOf(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.sort().join(",");
}
