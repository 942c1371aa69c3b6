import { Registry } from "prom-client";
import { MergedMetrics } from "../../src/observability/merged-metrics.ts";
import { Metrics } from "../../src/observability/metrics.ts";

const HEAD = `# Metrics, one by one

Every family on \`/metrics\` of the admin listener, besides those of the process and of Node.js (\`process_*\`, \`nodejs_*\`). This page is written by
\`npm run docs\` from \`src/observability\`. [metrics.md](metrics.md) explains the causes of ends and the service level, [monitoring.md](monitoring.md)
how to load rules and dashboards.

With \`--workers\` the families of all processes are added up. Histograms have \`_bucket\`, \`_sum\` and \`_count\`.

`;

interface Family {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly string[];
  readonly constructor: { readonly name: string };
}

/** docs/metrics-reference.md. */
export function metricsReference(): string {
  const rows = familiesOf(() => {
    const metrics = new Metrics({ withProcessMetrics: false });
    metrics.addKubelet();
    metrics.addReloads();
    metrics.addQuotas(() => true);
    new MergedMetrics();
  })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .map(({ name, help, labelNames, constructor: { name: type } }) => {
      const labels = labelNames.map((label) => `\`${label}\``).join(", ");
      return `| \`${name}\` | ${type.toLowerCase()} | ${labels} | ${help.replaceAll("|", "\\|")} |\n`;
    });
  return `${HEAD}| name | type | labels | meaning |\n|---|---|---|---|\n${rows.join("")}`;
}

/** What is registered while `build` runs: a registry does not tell label names. */
function familiesOf(build: () => void): Family[] {
  const families = new Map<string, Family>();
  const register = Registry.prototype.registerMetric;
  Registry.prototype.registerMetric = function (metric) {
    const family = metric as unknown as Family;
    families.set(family.name, family);
    register.call(this, metric);
  };
  try {
    build();
  } finally {
    Registry.prototype.registerMetric = register;
  }
  return [...families.values()];
}
