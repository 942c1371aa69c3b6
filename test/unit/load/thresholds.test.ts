import { describe, expect, it } from "vitest";
import { LoadCollector, type LoadReport } from "../../../packages/lab/src/load/load-report.ts";
import { Recorder } from "../../../packages/lab/src/load/recorder.ts";
import {
  HTTP_METRICS,
  judge,
  parseThreshold,
  SESSION_METRICS,
} from "../../../packages/lab/src/load/thresholds.ts";
import { httpReport, loadPlan } from "../../support/load-plan.ts";

/** 100 messages of 1 to 100 ms, 1 MiB each way, 3 of 4 sessions without failure, in 2 s. */
function measured(): LoadReport {
  const collector = new LoadCollector(loadPlan(), 1, Date.now());
  const recorder = new Recorder();
  for (let second = 0; second < 2; second++) {
    for (let ms = 1; ms <= 50; ms++) recorder.latency("message", second * 50 + ms);
    recorder.counts = { ...recorder.counts, sentBytes: 524_288, receivedBytes: 524_288, sentMessages: 50 };
    recorder.counts.finished = second === 0 ? 3 : 0;
    recorder.counts.failed = second;
    collector.add(recorder.interval(second, { untilMs: (second + 1) * 1_000, cpuShare: 0, lagMs: 0 }));
  }
  return collector.report(false);
}

/** 99 requests of 1 to 99 ms, and one that failed, in 2 s. */
const http = httpReport(Array.from({ length: 99 }, (_, index) => index + 1));

describe("thresholds of sessions", () => {
  it.each([
    ["message_latency:p50<=51ms", true],
    ["message_latency:p50<50ms", false],
    ["message_latency:p99.9<102ms", true],
    ["message_latency:max<100ms", false],
    ["message_latency:max<=100ms", true],
    ["message_latency:p1>900us", true],
    ["message_latency:p90>0.5s", false],
    ["error_rate<30%", true],
    ["error_rate<0.25", false],
    ["error_rate <= 0.25", true],
    ["failed<1", false],
    ["failed<=1", true],
    ["session_rate>=1.5", true],
    ["message_rate>50", false],
    ["sent_throughput>=512Ki", true],
    ["received_throughput>1Mi", false],
    // Nothing was measured: neither way holds.
    ["session_latency:p99<1s", false],
    ["session_latency:p99>0s", false],
  ])("%s: %s", (text, isMet) => {
    expect(judge(measured(), [parseThreshold(text, SESSION_METRICS)])).toMatchObject([{ text, isMet }]);
  });

  it.each([
    ["message_latency", "must be METRIC"],
    ["latency:p99<1s", "latency is none of first_byte_latency, message_latency"],
    ["constructor<1", "constructor is none of"],
    ["message_latency<1s", "the aggregate of message_latency must be p50, p99, p99.9 and the like, max"],
    ["message_latency:p0<1s", "and the like"],
    ["message_latency:p101<1s", "and the like"],
    ["message_latency:avg<1s", "and the like"],
    ["error_rate:p99<1%", "the aggregate of error_rate must be left out"],
    ["message_latency:p99<5", '"5" must be a duration'],
    ["error_rate<200%", "must be at most 100%"],
    ["failed<-1", "must be a number"],
    ["sent_throughput>x", "must be a quantity of bytes"],
    ["request_rate>1", "request_rate is none of"],
  ])("refuse %s", (text, message) => {
    expect(() => parseThreshold(text, SESSION_METRICS)).toThrow(message);
  });
});

describe("thresholds of plain requests", () => {
  it.each([
    ["request_latency:p75<=76ms", true],
    ["request_latency:max<99ms", false],
    ["error_rate<=1%", true],
    ["error_rate<1%", false],
    ["request_rate>49", true],
    ["received_throughput<1Ki", true],
  ])("%s: %s", (text, isMet) => {
    expect(judge(http, [parseThreshold(text, HTTP_METRICS)])).toMatchObject([{ isMet }]);
  });
});
