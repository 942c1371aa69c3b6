import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { atOnce } from "../../../src/lifecycle/slices.ts";
import { OperationsMetrics } from "../../../src/observability/operations-metrics.ts";

describe("metrics of operations", () => {
  it("show a shutdown from its beginning", async () => {
    const registry = new Registry();
    const metrics = new OperationsMetrics(registry);
    expect(await registry.metrics()).toContain("\nsluice_draining 0\n");
    metrics.observeDraining(() => true);
    expect(await registry.metrics()).toContain("\nsluice_draining 1\n");
  });

  it("show when certificates of Secrets expire, for as long as Ingresses name them", async () => {
    const registry = new Registry();
    const metrics = new OperationsMetrics(registry);
    const told: [string, number | undefined][] = [];
    metrics.observeCertificates((name, expiresAtMs) => told.push([name, expiresAtMs]));
    const of = (secret: string, expiresAtMs: number) => ({
      namespace: "shop",
      secret,
      expiresAtMs,
      lifetimeMs: 1_000,
    });
    atOnce(metrics.secretCertificatesServed([of("a", 1_000), of("b", 2_000)]));
    atOnce(metrics.secretCertificatesServed([of("b", 3_000)]));
    const [a, b] = ["a", "b"].map((secret) => `the certificate of the Secret shop/${secret}`) as [
      string,
      string,
    ];
    expect(told).toEqual([
      [a, 1_000],
      [b, 2_000],
      [b, 3_000],
      [a, undefined],
    ]);
    const text = await registry.metrics();
    const series = 'sluice_ingress_certificate_expiry_timestamp_seconds{namespace="shop",secret';
    expect(text).toContain(`${series}="b"} 3\n`);
    expect(text).not.toContain(`${series}="a"}`);
  });
});
