import { describe, expect, it } from "vitest";
import type { RequestTrace } from "../../../packages/client/src/observability/trace.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";
import { MergedMetrics } from "../../../src/observability/merged-metrics.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { openMetricsOf } from "../../../src/observability/open-metrics.ts";

const PLAN = { kind: "translate", countedAs: "new-protocol" } as const;

function trace(traceId: string, isRecorded = true): RequestTrace {
  const unused = (): never => {
    throw new Error("exemplars need the trace's id alone");
  };
  return { traceId, isRecorded, headers: [], rename: unused, set: unused, begin: unused, end: unused };
}

function bucketsWithTrace(text: string): string[] {
  return text.split("\n").filter((line) => line.includes("trace_id"));
}

describe("OpenMetrics", () => {
  it("names counters without _total, has no empty line, and ends", () => {
    const text = openMetricsOf(
      '# HELP a_total What\n# TYPE a_total counter\na_total{x="1"} 2\n\n# HELP b Other.\n# TYPE b counter\nb 1\n\n# TYPE c gauge\nc 3\n',
      [],
    );
    expect(text).toBe(
      '# HELP a What\n# TYPE a counter\na_total{x="1"} 2\n# HELP b Other.\n# TYPE b unknown\nb 1\n# TYPE c gauge\nc 3\n# EOF\n',
    );
  });

  it("has the newest recorded trace of each bucket, and none that is not recorded", async () => {
    const metrics = new Metrics({ withProcessMetrics: false });
    metrics.streamingStarted("exec", PLAN, 0.004, trace("old"));
    metrics.streamingStarted("exec", PLAN, 0.0041, trace("new"));
    metrics.streamingStarted("exec", PLAN, 0.0042, trace("skipped", false));
    metrics.streamingStarted("exec", PLAN, 3_600, trace("slow"));
    const found = bucketsWithTrace(await metrics.exposeOpenMetrics());
    expect(found).toEqual([
      expect.stringMatching(
        /^sluice_streaming_handshake_\w+_bucket\{le="0.005",.*\} 3 # \{trace_id="new"\} 0.0041 \d+\.\d{3}$/,
      ),
      expect.stringMatching(
        /^sluice_streaming_handshake_\w+_bucket\{le="\+Inf",.*\} 4 # \{trace_id="slow"\} 3600 /,
      ),
    ]);
    expect(await metrics.expose()).not.toContain("trace_id");
  });

  it("forgets those of an Ingress that is gone", async () => {
    const metrics = new Metrics({ withProcessMetrics: false });
    const names = { namespace: "default", ingress: "shop", service: "app" };
    atOnce(metrics.ingress.routesReplaced(1, [names], 10));
    metrics.ingress.requestEnded("h2", 200, names, 0.01, trace("of shop"));
    expect(bucketsWithTrace(await metrics.exposeOpenMetrics())).toHaveLength(1);
    atOnce(metrics.ingress.routesReplaced(0, [], 10));
    atOnce(metrics.ingress.routesReplaced(1, [names], 10));
    expect(bucketsWithTrace(await metrics.exposeOpenMetrics())).toEqual([]);
  });

  it("keeps those of several processes", async () => {
    const merged = new MergedMetrics();
    for (const [index, id] of ["one", "two"].entries()) {
      const metrics = new Metrics({ withProcessMetrics: false });
      metrics.streamingStarted("exec", PLAN, 0.004 + index, trace(id));
      // As it travels between processes.
      merged.seen(metrics, structuredClone(await metrics.snapshot()));
    }
    const text = await merged.exposeOpenMetrics();
    expect(bucketsWithTrace(text).map((line) => /trace_id="(\w+)"/.exec(line)?.[1])).toEqual(["one", "two"]);
    expect(text.match(/# EOF/g)).toHaveLength(1);
  });
});
