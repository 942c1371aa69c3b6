import { setTimeout as wait } from "node:timers/promises";
import { TERMINAL_RESET, TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { findRecording } from "../../recording/reading/find-recordings.ts";
import { readRecording } from "../../recording/reading/read-recording.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { replayFlags } from "../commands/replay.ts";
import { reportingFileErrors, warnOfNewerFormat } from "./report-file-error.ts";

/** Plays a recording on standard output. */
export function run(invocation: Invocation<typeof replayFlags>): Promise<number> {
  return reportingFileErrors("replay", () => replay(invocation));
}

async function replay({ values, operands }: Invocation<typeof replayFlags>): Promise<number> {
  const [name, ...more] = operands;
  if (name === undefined || more.length > 0)
    throw new UsageError("the operand must be one recording", { showsUsage: true });
  const file = await findRecording(values.folder, name);
  const output: [text: string, waitMs: number][] = [];
  let silenceMs = 0;
  await readRecording(file, ({ interval, code, data }) => {
    silenceMs += interval * 1_000;
    if (code !== "o") return;
    output.push([data, silenceMs]);
    silenceMs = 0;
  });
  await warnOfNewerFormat(file);
  const filter = new TerminalFilter();
  const { idle: longestMs = Number.POSITIVE_INFINITY, speed, raw } = values;
  for (const [text, waitMs] of output) {
    const ms = Math.min(waitMs, longestMs) / speed;
    if (ms >= 1) await wait(ms);
    process.stdout.write(raw ? text : filter.push(text));
  }
  // Resets colours and the alternate screen, which a session that was cut short leaves behind.
  if (!raw && process.stdout.isTTY) process.stdout.write(`${TERMINAL_RESET}\n`);
  return 0;
}
