import type { Completion, Flag, FlagTable } from "../config/flag.ts";

/** A shell's status for a program that SIGPIPE ended. */
export const EXIT_BROKEN_PIPE = 141;

/** One command, as the parser, completion and documentation see it. */
export interface Command<Flags extends FlagTable = FlagTable> {
  /** Each way to call it, without `sluice NAME`. */
  readonly usage: readonly string[];
  /** The command's purpose, in a few sentences. */
  readonly description: string;
  readonly operands?: readonly Operand[];
  readonly flags: Flags;
  /** The words after `--` are a command line for another program. */
  readonly takesCommand?: true;
  readonly examples: readonly Example[];
  /** Set if it has exit codes besides 0 (ok), 1 (failed) and 2 (usage or configuration). */
  readonly exitCodes?: string;
}

export interface Operand {
  readonly name: string;
  readonly help: string;
  readonly choices?: readonly string[];
  readonly completes?: Completion;
}

interface Example {
  /** The example's purpose. */
  readonly title: string;
  /** The line as typed in a shell. */
  readonly line: string;
}

/** A parsed command line. */
export interface Invocation<Flags extends FlagTable = FlagTable> {
  readonly values: ValuesOf<Flags>;
  readonly operands: readonly string[];
  /** The words after the first `--`, if the command accepts them. */
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

/** Preserves the flags' literal types. */
export function defineCommand<const Flags extends FlagTable>(command: Command<Flags>): Command<Flags> {
  return command;
}

/** The command line is wrong; the message names the valid choices. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** An operand is missing or superfluous, so the usage helps more than the message. */
  readonly showsUsage: boolean;

  constructor(message: string, { showsUsage = false }: { readonly showsUsage?: boolean } = {}) {
    super(message);
    this.showsUsage = showsUsage;
  }
}
