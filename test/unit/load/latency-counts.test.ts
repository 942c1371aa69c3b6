import fc from "fast-check";
import { build, type JsHistogram } from "hdr-histogram-js";
import { describe, expect, it } from "vitest";
import { LATENCY_BUCKETS, LatencyCounts, upperUs } from "../../../packages/lab/src/load/latency-counts.ts";

describe("latency counts", () => {
  it("know every percentile to 1 per cent", () => {
    const milliseconds = fc.double({ min: 0, max: 4_000_000, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(milliseconds, { minLength: 1 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (all, share) => {
          const counts = new LatencyCounts();
          for (const one of all) counts.record(one);
          const sorted = all.map((one) => Math.round(one * 1_000)).toSorted((a, b) => a - b);
          const exact = sorted[Math.max(1, Math.ceil(share * all.length)) - 1] ?? 0;
          const us = counts.percentileUs(share);
          expect(us).toBeGreaterThanOrEqual(exact);
          expect(us).toBeLessThanOrEqual(exact * 1.01);
          expect(counts.maxUs).toBe(sorted.at(-1));
        },
      ),
    );
  });

  it("have HdrHistogram's buckets for two significant digits", () => {
    const request = {
      lowestDiscernibleValue: 1,
      highestTrackableValue: 0xffff_ffff,
      numberOfSignificantValueDigits: 2 as const,
    };
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffff_ffff }), { minLength: 1 }), (all) => {
        const [counts, reference] = [new LatencyCounts(), build(request) as JsHistogram];
        for (const us of all) {
          counts.record(us / 1_000);
          reference.recordValue(us);
        }
        const expected = new Map<number, number>();
        for (const us of all) {
          const upper = reference.highestEquivalentValue(us);
          expected.set(upper, (expected.get(upper) ?? 0) + 1);
        }
        expect(new Map(counts.toSparse().map(([bucket, count]) => [upperUs(bucket), count]))).toEqual(
          expected,
        );
      }),
    );
  });

  it("add up across processes", () => {
    const [one, other, both] = [new LatencyCounts(), new LatencyCounts(), new LatencyCounts()];
    for (let ms = 0; ms < 1_000; ms++) {
      (ms % 3 === 0 ? one : other).record(ms);
      both.record(ms);
    }
    one.add(other.toSparse(), other.maxUs);
    expect(one.toSparse()).toEqual(both.toSparse());
    expect(one.total).toBe(1_000);
    expect(one.percentileUs(0.5)).toBe(both.percentileUs(0.5));
  });

  it("has a bucket for each latency below the bound of buckets", () => {
    const counts = new LatencyCounts();
    counts.record(Number.MAX_VALUE);
    expect(counts.toSparse()).toEqual([[LATENCY_BUCKETS - 1, 1]]);
  });

  it("count nothing as 0", () => {
    expect(new LatencyCounts().percentileUs(0.99)).toBe(0);
  });
});
