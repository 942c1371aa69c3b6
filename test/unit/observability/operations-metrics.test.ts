import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { OperationsMetrics } from "../../../src/observability/operations-metrics.ts";

describe("metrics of operations", () => {
  it("show a shutdown from its beginning", async () => {
    const registry = new Registry();
    const metrics = new OperationsMetrics(registry);
    expect(await registry.metrics()).toContain("\nsluice_draining 0\n");
    metrics.observeDraining(() => true);
    expect(await registry.metrics()).toContain("\nsluice_draining 1\n");
  });
});
