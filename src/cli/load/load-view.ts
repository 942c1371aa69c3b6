import { duration, type LoadCollector, type LoadPlan, size } from "@sluice/lab/load";
import cliProgress from "cli-progress";

const PLAIN_EVERY_SECONDS = 5;

interface LoadView {
  update(collector: LoadCollector): void;
  stop(): void;
}

/** Progress on stderr: on a terminal one line that is redrawn, elsewhere a line every few seconds. */
export function openLoadView({ durationMs }: LoadPlan): LoadView {
  const seconds = Math.ceil(durationMs / 1_000);
  return process.stderr.isTTY ? terminalView(seconds) : plainView(seconds);
}

function terminalView(seconds: number): LoadView {
  const bar = new cliProgress.SingleBar({
    format: "{bar} {value}/{total} s  {line}",
    barsize: 20,
    stream: process.stderr,
    // The command handles Ctrl-C itself: it ends the run with a summary.
    gracefulExit: false,
    hideCursor: true,
  });
  bar.start(seconds, 0, { line: "starting" });
  return {
    update: (collector) =>
      bar.update(Math.min(seconds, collector.latest.second), { line: lineOf(collector) }),
    stop: () => bar.stop(),
  };
}

function plainView(seconds: number): LoadView {
  let shown = 0;
  return {
    update: (collector) => {
      const { second } = collector.latest;
      if (second < shown + PLAIN_EVERY_SECONDS) return;
      shown = second;
      process.stderr.write(`${second}/${seconds} s  ${lineOf(collector)}\n`);
    },
    stop: () => {},
  };
}

function lineOf(collector: LoadCollector): string {
  const { active, sentBytes, receivedBytes } = collector.latest;
  const timed = collector.summaryOf("message");
  const { p50Us, p99Us } = timed.count > 0 ? timed : collector.summaryOf("firstByte");
  return `${active} sessions  up ${size(sentBytes)}/s  down ${size(receivedBytes)}/s  p50 ${duration(p50Us)}  p99 ${duration(p99Us)}  ${collector.failed} failed`;
}
