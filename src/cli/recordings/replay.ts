import { setTimeout as wait } from "node:timers/promises";
import { TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { findRecording } from "../../recording/reading/find-recordings.ts";
import { readRecording } from "../../recording/reading/read-recording.ts";
import { takeKeys } from "../client/terminal.ts";
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
  const pace = new Pace();
  const { signal } = interrupt;
  process.once("SIGINT", () => {
    interrupt.abort();
    pace.end();
  });
  let silenceMs = 0;
  let takeBack = (): void => {};
  let giveBackKeys = takeBack;
  try {
    await readRecording(file, {
      signal,
      onHeader: (line) => {
        warnOfNewerFormat(line, file);
        giveBackKeys = takeKeys((key) => {
          if (key === " ") pace.pauseOrGoOn();
        });
        // A session or replay that ends early leaves its modes in the terminal.
        if (!raw) takeBack = lendTerminal(TerminalFilter.RESET);
      },
      onEvent: async ({ interval, code, data }) => {
        silenceMs += interval * 1_000;
        if (code !== "o") return;
        const ms = Math.min(silenceMs, longestMs) / speed;
        silenceMs = 0;
        await pace.wait(ms);
        if (!signal.aborted) await writeOut(raw ? data : filter.push(data), signal);
      },
    });
  } finally {
    giveBackKeys();
    takeBack();
  }
  return signal.aborted ? 130 : 0;
}

/** The longest wait of one timer in milliseconds. Node.js ends a longer one at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The pace of a replay, which can be paused and ended. */
class Pace {
  #changed = new AbortController();
  #isPaused = false;
  #isEnded = false;

  pauseOrGoOn(): void {
    this.#isPaused = !this.#isPaused;
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  end(): void {
    this.#isEnded = true;
    this.#changed.abort();
  }

  /** Resolves early once it is ended. */
  async wait(ms: number): Promise<void> {
    for (let left = ms; !this.#isEnded && (this.#isPaused || left >= 1); ) {
      const [since, isPaused] = [performance.now(), this.#isPaused];
      const longest = Math.min(isPaused ? MAX_TIMER_MS : left, MAX_TIMER_MS);
      await wait(longest, undefined, { signal: this.#changed.signal }).catch(() => {});
      if (!isPaused) left -= performance.now() - since;
    }
  }
}
