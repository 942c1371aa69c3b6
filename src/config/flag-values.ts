import { parseDuration } from "./duration.ts";
import type { FileContent } from "./named-file.ts";

/** What flags are read through: problems are noted under the flag's name, and reading goes on. */
export interface FlagReader<Flag extends string> {
  text(flag: Flag): string | undefined;
  /** Absolute; a relative one counts from the working directory. */
  file(flag: Flag, content?: FileContent, certificateFile?: string | undefined): string | undefined;
  list(
    flag: Flag,
    fallback: readonly string[],
    check: (item: string) => string | undefined,
  ): readonly string[];
  refuse(flag: Flag, message: string): void;
}

type Texts<Flag extends string> = Pick<FlagReader<Flag>, "text" | "refuse">;

/** Milliseconds; undefined when the flag is absent or wrong. */
export function durationFlag<Flag extends string>(flag: Flag, flags: Texts<Flag>): number | undefined {
  const text = flags.text(flag);
  if (text === undefined) return undefined;
  try {
    const milliseconds = parseDuration(text);
    if (milliseconds >= 0) return milliseconds;
    flags.refuse(flag, "must not be negative");
  } catch (error) {
    flags.refuse(flag, error instanceof Error ? error.message : String(error));
  }
  return undefined;
}

/** A whole number of at most ten digits and at least `min`; undefined when the flag is absent or wrong. */
export function countFlag<Flag extends string>(flag: Flag, flags: Texts<Flag>, min = 0): number | undefined {
  const value = flags.text(flag);
  if (value === undefined) return undefined;
  if (/^\d{1,10}$/.test(value) && Number(value) >= min) return Number(value);
  const least = min === 0 ? "" : ` of at least ${min}`;
  flags.refuse(flag, `must be a whole number${least}, got ${JSON.stringify(value.slice(0, 80))}`);
  return undefined;
}

export function booleanFlag<Flag extends string>(flag: Flag, flags: Texts<Flag>): boolean | undefined {
  const value = flags.text(flag);
  if (value === undefined || value === "true" || value === "false")
    return value === undefined ? undefined : value === "true";
  flags.refuse(flag, `must be true or false, got ${JSON.stringify(value.slice(0, 80))}`);
  return undefined;
}

/** One of the choices; undefined when the flag is absent or wrong. */
export function choiceFlag<Flag extends string, T extends string>(
  flag: Flag,
  flags: Texts<Flag>,
  choices: readonly T[],
): T | undefined {
  const value = flags.text(flag);
  if (value === undefined) return undefined;
  const choice = choices.find((one) => one === value);
  if (choice === undefined) {
    flags.refuse(flag, `must be one of ${choices.join(", ")}, got ${JSON.stringify(value.slice(0, 80))}`);
  }
  return choice;
}
