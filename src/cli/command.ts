import type { Completion, Flag, FlagTable } from "../config/flag.ts";

/** One command, as it is parsed, completed and documented. */
export interface Command<Flags extends FlagTable = FlagTable> {
  /** Each way to call it, without `sluice NAME`. */
  readonly usage: readonly string[];
  /** What it does, in a few sentences. */
  readonly description: string;
  readonly operands?: readonly Operand[];
  readonly flags: Flags;
  /** What follows `--` is a command line of its own. */
  readonly takesCommand?: true;
  readonly examples: readonly Example[];
  /** Where it has more than 0 (ok), 1 (failed) and 2 (usage or configuration). */
  readonly exitCodes?: string;
}

export interface Operand {
  readonly name: string;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly completes?: Completion;
}

export interface Example {
  /** What it is good for. */
  readonly title: string;
  /** As a shell would take it. */
  readonly line: string;
}

/** A command line that was understood. */
export interface Invocation<Flags extends FlagTable = FlagTable> {
  readonly values: ValuesOf<Flags>;
  readonly operands: readonly string[];
  /** What follows the first `--`, of a command that takes one. */
  readonly command?: readonly string[] | undefined;
}

export type ValuesOf<Flags extends FlagTable> = {
  readonly [Name in keyof Flags]: Flags[Name] extends { isRepeatable: true }
    ? readonly ValueOf<Flags[Name]>[]
    : Flags[Name] extends { default: string } | { isRequired: true }
      ? ValueOf<Flags[Name]>
      : Flags[Name] extends { value: string }
        ? ValueOf<Flags[Name]> | undefined
        : boolean;
};

type ValueOf<F extends Flag> = F extends { parse: (text: string) => infer Value }
  ? Value
  : F extends { choices: readonly (infer Choice)[] }
    ? Choice
    : F extends { value: string }
      ? string
      : boolean;

/** What runs it; resolves to the exit code. */
export interface CommandProgram<Flags extends FlagTable = FlagTable> {
  run(invocation: Invocation<Flags>): Promise<number>;
}

/** Keeps the type of the flags. */
export function defineCommand<const Flags extends FlagTable>(command: Command<Flags>): Command<Flags> {
  return command;
}
