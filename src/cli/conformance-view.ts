import cliProgress from "cli-progress";
import { type CaseReport, caseLine } from "../conformance/index.ts";
import { maskControls } from "../observability/mask-controls.ts";

export interface ConformanceView {
  update(report: CaseReport, done: number): void;
  stop(): void;
}

/** On stderr: one line that is redrawn on a terminal, a line for each case elsewhere. */
export function openConformanceView(total: number): ConformanceView {
  if (!process.stderr.isTTY) {
    return {
      update: (report, done) =>
        void process.stderr.write(`${done}/${total} ${maskControls(caseLine(report))}\n`),
      stop: () => {},
    };
  }
  let failed = 0;
  const bar = new cliProgress.SingleBar({
    format: "{bar} {value}/{total}  {failed} failed  {id}",
    barsize: 20,
    stream: process.stderr,
    // Ctrl-C ends the run with a report.
    gracefulExit: false,
    hideCursor: true,
  });
  bar.start(total, 0, { id: "", failed });
  return {
    update: ({ id, verdict }, done) => {
      if (verdict === "failed") failed += 1;
      bar.update(done, { id, failed });
    },
    stop: () => bar.stop(),
  };
}
