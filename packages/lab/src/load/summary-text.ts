import type { JudgedThreshold, LoadReport } from "./load-report.ts";
import { missingParts } from "./read-reports.ts";
import type { LatencyName } from "./recorder.ts";

const MIB = 1024 * 1024;
/** A process that stayed below this CPU share did not cause its own lag. */
const CROWDED_CPU_SHARE = 0.5;
const NAMES: Readonly<Record<LatencyName, string>> = {
  firstByte: "first byte",
  message: "message",
  session: "session",
};

/** The table at the end of a run. */
export function summaryText(report: LoadReport): string {
  const { sessions, bytes, messages, seconds, errors, generator } = report;
  const rate = (total: number) => (seconds === 0 ? 0 : total / seconds);
  const lines = [
    `${report.wasInterrupted ? "interrupted after" : "ran"} ${seconds} s`,
    ...partLines(report),
    `sessions   ${sessions.started} started, ${sessions.finished} finished, ${sessions.failed} failed`,
    `sent       ${size(bytes.sent)} (${size(rate(bytes.sent))}/s), ${messages.sent} messages (${rate(messages.sent).toFixed(0)}/s)`,
    `received   ${size(bytes.received)} (${size(rate(bytes.received))}/s), ${messages.received} messages back`,
    `verified   ${bytes.received === 0 ? "nothing, for nothing came back" : VERIFIED[report.plan.verification]}`,
    "",
    ...latencyLines(report.latencies),
    ...(errors.length === 0 ? ["no errors"] : ["errors by leg and kind"]),
    ...errors.map(
      ({ leg, kind, count, message }) =>
        `${String(count).padStart(8)}  ${leg.padEnd(10)}${kind.padEnd(26)}  ${message.split("\n", 1)[0]}`,
    ),
    "",
    ...thresholdLines(report.thresholds),
    generatorText(generator),
  ];
  return `${lines.join("\n")}\n`;
}

export function partLines(report: Pick<LoadReport, "parts">): string[] {
  const { of, present, startSpreadMs } = report.parts;
  if (of === 1) return [];
  if (present.length === 1) return [`part       ${present[0]} of ${of}`];
  const missing = missingParts(report);
  const gap = missing.length === 0 ? "" : `, ${missing.join(", ")} MISSING`;
  return [`parts      ${present.length} of ${of}${gap}, started within ${duration(startSpreadMs * 1_000)}`];
}

/** A table, followed by an empty line. */
export function thresholdLines(thresholds: readonly JudgedThreshold[]): string[] {
  if (thresholds.length === 0) return [];
  const width = Math.max(...thresholds.map(({ text }) => text.length));
  return [
    "thresholds",
    ...thresholds.map(
      (judged) =>
        `  ${judged.isMet ? "pass" : "FAIL"}  ${judged.text.padEnd(width)}  ${measuredText(judged)}`,
    ),
    "",
  ];
}

/** A threshold's measured value, with its unit. */
export function measuredText({ value, unit }: JudgedThreshold): string {
  return value === null ? "nothing was measured" : FORMATS[unit](value);
}

const FORMATS: Readonly<Record<JudgedThreshold["unit"], (value: number) => string>> = {
  us: duration,
  share: (value) => `${(value * 100).toFixed(2)} %`,
  number: (value) => String(Number(value.toFixed(2))),
  bytes: (value) => `${size(value)}/s`,
};

/** A table, followed by an empty line. Without figures there is no table. */
function latencyLines(latencies: LoadReport["latencies"]): string[] {
  const measured = (Object.keys(NAMES) as LatencyName[]).filter((name) => latencies[name].count > 0);
  if (measured.length === 0) return [];
  const heads = ["count", "p50", "p90", "p99", "p99.9", "max"];
  return [
    `latency       ${heads.map((head) => head.padStart(10)).join("")}`,
    ...measured.map((name) => {
      const { count, p50Us, p90Us, p99Us, p999Us, maxUs } = latencies[name];
      const times = [p50Us, p90Us, p99Us, p999Us, maxUs].map((us) => duration(us).padStart(10));
      return `${NAMES[name].padEnd(14)}${String(count).padStart(10)}${times.join("")}`;
    }),
    "",
  ];
}

const VERIFIED = {
  echo: "every byte, against the seeded stream that was sent",
  digest: "every byte, by the SHA-256 that the remote command prints",
  sequence: "every byte, against the numbered lines",
  none: "nothing but how sessions ended",
} as const;

/** Says whether the figures measure the server or the generator. */
function generatorText({
  processes,
  maxCpuShare,
  maxLagMs,
  busySeconds,
  wasBottleneck,
}: LoadReport["generator"]): string {
  const facts = `${processes} process${processes === 1 ? "" : "es"}, at most ${(maxCpuShare * 100).toFixed(0)} % of a core each, event loop at most ${maxLagMs.toFixed(0)} ms late`;
  if (!wasBottleneck) return `generator  was not the bottleneck: ${facts}`;
  const text = `generator  WAS THE BOTTLENECK in ${busySeconds} s: ${facts}.`;
  // The process was late but not busy: other programs used its core.
  if (maxCpuShare < CROWDED_CPU_SHARE) return `${text} Other programs had its cores: use another machine.`;
  return `${text} Use more --processes, or another machine.`;
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes.toFixed(0)} B`;
  return bytes < MIB ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / MIB).toFixed(1)} MiB`;
}

export function duration(us: number): string {
  if (us < 1_000) return `${us} µs`;
  return us < 1_000_000 ? `${(us / 1_000).toFixed(1)} ms` : `${(us / 1_000_000).toFixed(2)} s`;
}
