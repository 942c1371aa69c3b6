import { type CaseReport, caseLine } from "@sluice/lab/conformance";
import cliProgress from "cli-progress";
import { maskControls } from "../../observability/mask-controls.ts";

/** Without a terminal, the time between two progress lines. */
const WAIT_LINE_MS = 15_000;

interface ConformanceView {
  update(report: CaseReport, done: number): void;
  /** The remaining cases run together and print nothing for up to this time. */
  wait(cases: number, longestMs: number): void;
  stop(): void;
}

/** Writes to stderr: on a terminal one line that is redrawn, elsewhere a line for each case. */
export function openConformanceView(total: number): ConformanceView {
  const startMs = performance.now();
  let [done, failed, endsAtMs] = [0, 0, startMs];
  const secondsLeft = (): number => Math.max(0, Math.ceil((endsAtMs - performance.now()) / 1_000));
  if (!process.stderr.isTTY) {
    const left = (): void =>
      void process.stderr.write(
        `${done}/${total} ${total - done} cases wait, for up to ${secondsLeft()} s more\n`,
      );
    let timer: NodeJS.Timeout | undefined;
    return {
      update: (report, now) => {
        done = now;
        process.stderr.write(`${done}/${total} ${maskControls(caseLine(report))}\n`);
      },
      wait: (_cases, longestMs) => {
        endsAtMs = performance.now() + longestMs;
        left();
        timer = setInterval(left, WAIT_LINE_MS).unref();
      },
      stop: () => clearInterval(timer),
    };
  }
  const bar = new cliProgress.SingleBar({
    format: "{bar} {value}/{total}  {failed} failed  {id}{waits}",
    barsize: 20,
    stream: process.stderr,
    // The command handles Ctrl-C itself: it ends the run with a report.
    gracefulExit: false,
    hideCursor: true,
  });
  bar.start(total, 0, { id: "", failed, waits: "" });
  let timer: NodeJS.Timeout | undefined;
  return {
    update: ({ id, verdict }, now) => {
      done = now;
      if (verdict === "failed") failed += 1;
      bar.update(done, { id, failed });
    },
    wait: (_cases, longestMs) => {
      endsAtMs = performance.now() + longestMs;
      const show = (): void => bar.update(done, { id: "", waits: `silence, up to ${secondsLeft()} s more` });
      show();
      timer = setInterval(show, 1_000).unref();
    },
    stop: () => {
      clearInterval(timer);
      bar.stop();
    },
  };
}
