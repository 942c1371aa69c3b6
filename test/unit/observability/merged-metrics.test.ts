import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { expect, it } from "vitest";
import { ClusterMetrics } from "../../../src/observability/cluster-metrics.ts";
import { MergedMetrics } from "../../../src/observability/merged-metrics.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { NodeMetrics } from "../../../src/observability/node-metrics.ts";

async function snapshot(count: number): Promise<readonly object[]> {
  const registers = [new Registry()];
  new Counter({ name: "asked_total", help: "h", labelNames: ["code"], registers }).inc(
    { code: "200" },
    count,
  );
  new Gauge({ name: "open", help: "h", registers }).set(count);
  const nodes = new NodeMetrics(registers[0] as Registry);
  nodes.observe(() => ({ remembered: 3, dead: count, avoided: { tunnel: 1 } }));
  const cluster = new ClusterMetrics(registers[0] as Registry);
  cluster.observe(() => [{ kind: "pods", objects: 7, staleSeconds: count, isSynced: count === 2 }]);
  new Histogram({ name: "took_seconds", help: "h", buckets: [1, 10], registers }).observe(count);
  return (registers[0] as Registry).getMetricsAsJSON();
}

it("counts the faults of the process itself with those of the others, as one metric", async () => {
  const metrics = new MergedMetrics();
  const worker = new Metrics({ withProcessMetrics: false });
  worker.internalError("session");
  metrics.seen({}, await worker.snapshot());
  metrics.internalError("session");
  metrics.internalError("process");
  const text = await metrics.expose();
  expect(text).toContain('sluice_internal_errors_total{where="session"} 2');
  expect(text).toContain('sluice_internal_errors_total{where="process"} 1');
  expect(text.match(/# TYPE sluice_internal_errors_total/g)).toHaveLength(1);
});

it("sums what lives, and keeps what the dead had counted", async () => {
  const metrics = new MergedMetrics();
  const lines = async () => (await metrics.expose()).split("\n").filter((line) => /^[a-z]/.test(line));
  const sources = [{}, {}, {}] as const;
  metrics.seen(sources[0], await snapshot(2));
  metrics.seen(sources[1], await snapshot(3));
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'asked_total{code="200"} 5',
      "open 5",
      "sluice_nodes_remembered 3",
      "sluice_nodes_dead 3",
      'sluice_nodes_avoiding_path{path="tunnel"} 1',
      'sluice_cluster_objects{kind="pods"} 7',
      'sluice_cluster_stale_seconds{kind="pods"} 3',
      'sluice_cluster_synced{kind="pods"} 0',
      'took_seconds_bucket{le="1"} 0',
      "took_seconds_count 2",
    ]),
  );
  metrics.gone(sources[0], "crash");
  metrics.gone(sources[1], "crash");
  metrics.seen(sources[2], await snapshot(1));
  for (let times = 0; times < 2; times += 1) {
    expect(await lines()).toEqual(
      expect.arrayContaining([
        'asked_total{code="200"} 6',
        "open 1",
        "took_seconds_sum 6",
        'sluice_workers_ended_total{cause="crash"} 2',
      ]),
    );
  }
});
