import { setTimeout as wait } from "node:timers/promises";
import { TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { findRecording } from "../../recording/reading/find-recordings.ts";
import { readRecording } from "../../recording/reading/read-recording.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/replay.ts";
import { lendTerminal, writeOut } from "../print-text.ts";
import { reportingFileErrors, warnOfNewerFormat } from "./report-file-error.ts";

/** Plays a recording on standard output. Exit codes: 0, 130 after SIGINT. */
export function run(invocation: Invocation<typeof command.flags>): Promise<number> {
  return reportingFileErrors("replay", () => replay(invocation));
}

async function replay({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  const [name, ...more] = operands;
  if (name === undefined || more.length > 0) throw new UsageError("name one recording", { showsUsage: true });
  const file = await findRecording(values.folder, name);
  const filter = new TerminalFilter();
  const { idle: longestMs = Number.POSITIVE_INFINITY, speed, raw } = values;
  const interrupt = new AbortController();
  const { signal } = interrupt;
  process.once("SIGINT", () => interrupt.abort());
  let silenceMs = 0;
  let takeBack = (): void => {};
  try {
    await readRecording(file, {
      signal,
      onHeader: (line) => {
        warnOfNewerFormat(line, file);
        // For what a session leaves behind that was cut short, or a replay.
        if (!raw) takeBack = lendTerminal(TerminalFilter.RESET);
      },
      onEvent: async ({ interval, code, data }) => {
        silenceMs += interval * 1_000;
        if (code !== "o") return;
        const ms = Math.min(silenceMs, longestMs) / speed;
        silenceMs = 0;
        await waitFor(ms, signal);
        if (!signal.aborted) await writeOut(raw ? data : filter.push(data), signal);
      },
    });
  } finally {
    takeBack();
  }
  return signal.aborted ? 130 : 0;
}

/** The longest wait of one timer in milliseconds. Node.js ends a longer one at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Resolves early if the signal aborts. */
async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  for (let left = ms; left >= 1 && !signal.aborted; left -= MAX_TIMER_MS)
    await wait(Math.min(left, MAX_TIMER_MS), undefined, { signal }).catch(() => {});
}
