import { Counter, Gauge, Histogram, type Metric, type Registry } from "prom-client";

/** Names, or each name's values. Every combination of listed values is exposed from the start, as 0. */
type Labels = readonly string[] | Readonly<Record<string, readonly string[]>>;
type NameOf<L> = L extends readonly (infer Name extends string)[] ? Name : Extract<keyof L, string>;
type Aggregator = "sum" | "first" | "min" | "max";

/** One family: a row of its room's table. docs/metrics.md is written from these rows. */
export interface Family<M = unknown> {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly create: (registry: Registry, collect: (() => void) | undefined) => M;
}

type Families = Readonly<Record<string, Family>>;
type MetricOf<F> = F extends Family<infer M> ? M : never;
export type MetricsOf<F extends Families> = { readonly [Key in keyof F]: MetricOf<F[Key]> };
/** Functions that set their metric at each scrape. */
type Collectors<F extends Families> = { readonly [Key in keyof F]?: (metric: MetricOf<F[Key]>) => void };

export function counter<const L extends Labels = readonly []>(
  name: string,
  help: string,
  labels?: L,
): Family<Counter<NameOf<L>>> {
  return family("counter", name, help, labels, (options) => {
    const metric = new Counter<NameOf<L>>(options);
    // rate() misses the first event of a series that starts with it.
    for (const values of combinations(labels)) metric.inc(values as Record<NameOf<L>, string>, 0);
    return metric;
  });
}

/** `aggregator` merges the values of worker processes. */
export function gauge<const L extends Labels = readonly []>(
  name: string,
  help: string,
  labels?: L,
  aggregator: Aggregator = "sum",
): Family<Gauge<NameOf<L>>> {
  return family("gauge", name, help, labels, (options) => {
    const metric = new Gauge<NameOf<L>>({ ...options, aggregator });
    for (const values of combinations(labels)) metric.set(values as Record<NameOf<L>, string>, 0);
    return metric;
  });
}

export function histogram<const L extends readonly string[]>(
  name: string,
  help: string,
  labels: L,
  buckets: readonly number[],
): Family<Histogram<L[number]>> {
  const upperBounds = [...buckets];
  return family(
    "histogram",
    name,
    help,
    labels,
    (options) => new Histogram<L[number]>({ ...options, buckets: upperBounds }),
  );
}

/** Creates the table's metrics in the registry. */
export function register<F extends Families>(
  registry: Registry,
  families: F,
  collectors: Collectors<F> = {},
): MetricsOf<F> {
  const entries = Object.entries<Family>(families).map(([key, row]) => {
    const collect = collectors[key] as ((metric: unknown) => void) | undefined;
    // prom-client calls it as a method of the metric.
    const method =
      collect === undefined
        ? undefined
        : function (this: unknown) {
            collect(this);
          };
    return [key, row.create(registry, method)];
  });
  return Object.fromEntries(entries) as MetricsOf<F>;
}

interface FamilyOptions<Name extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: Name[];
  readonly registers: Registry[];
  readonly collect?: () => void;
}

function family<M extends Metric<string>, L extends Labels>(
  type: Family["type"],
  name: string,
  help: string,
  labels: L | undefined,
  make: (options: FamilyOptions<NameOf<L>>) => M,
): Family<M> {
  const labelNames = labels === undefined ? [] : isNames(labels) ? [...labels] : Object.keys(labels);
  const create = (registry: Registry, collect: (() => void) | undefined): M =>
    make({
      name,
      help,
      labelNames: labelNames as NameOf<L>[],
      registers: [registry],
      ...(collect && { collect }),
    });
  return { type, name, help, labelNames, create };
}

function isNames(labels: Labels): labels is readonly string[] {
  return Array.isArray(labels);
}

function combinations(labels: Labels | undefined): Readonly<Record<string, string>>[] {
  if (labels === undefined || isNames(labels)) return [];
  return Object.entries(labels).reduce<Readonly<Record<string, string>>[]>(
    (before, [name, values]) => before.flatMap((each) => values.map((value) => ({ ...each, [name]: value }))),
    [{}],
  );
}
