import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { MergedMetrics } from "../../../src/observability/merged-metrics.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { withGeneratedPart } from "../../support/generated-part.ts";
import { METRIC_FAMILIES, metricsReference } from "../../support/metrics-reference.ts";

const page = fileURLToPath(new URL("../../../docs/metrics.md", import.meta.url));

it("docs/metrics.md has the table of families that `npm run docs` writes", async () => {
  const text = withGeneratedPart(readFileSync(page, "utf8"), "families", metricsReference());
  await expect(text).toMatchFileSnapshot(page);
});

it("every family that is registered is a row, as it is registered", () => {
  const documented = METRIC_FAMILIES.map(({ name, help, labelNames }) => ({ name, help, labelNames }));
  expect(registered().toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(documented);
  expect(documented.length).toBeGreaterThan(60);
});

/** A registry does not tell label names. */
function registered(): { name: string; help: string; labelNames: readonly string[] }[] {
  const families = new Map<string, { name: string; help: string; labelNames: readonly string[] }>();
  const register = Registry.prototype.registerMetric;
  Registry.prototype.registerMetric = function (metric) {
    const { name, help, labelNames } = metric as unknown as {
      name: string;
      help: string;
      labelNames: string[];
    };
    families.set(name, { name, help, labelNames });
    register.call(this, metric);
  };
  try {
    const metrics = new Metrics({ withProcessMetrics: false });
    metrics.addKubelet();
    metrics.addReloads();
    metrics.addQuotas(() => true);
    metrics.addRecording(() => ({ size: 0, queuedBytes: 0 }));
    new MergedMetrics();
  } finally {
    Registry.prototype.registerMetric = register;
  }
  return [...families.values()];
}
