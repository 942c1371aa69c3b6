/** What a shell offers for a value. */
export type Completion =
  | "file"
  | "folder"
  | "context"
  | "cluster"
  | "user"
  | "namespace"
  | "pod"
  | "container";

/** One flag of a command. The parser, help, shell completion, man pages and docs/cli.md read it here. */
export interface Flag<Value = unknown> {
  /** One letter, without its dash. */
  readonly short?: string;
  /** The placeholder of its value, such as `FILE`. Absent: a switch, which takes `=true` and `=false` as kubectl's do. */
  readonly value?: string;
  /** What it does: a phrase, without the default and without a full stop. */
  readonly help: string;
  /** As it would be written on the command line. */
  readonly default?: string;
  readonly isRequired?: true;
  /** Each time adds a value; absent: the last one counts. */
  readonly isRepeatable?: true;
  /** Not for people. */
  readonly isHidden?: true;
  readonly choices?: readonly string[];
  readonly completes?: Completion;
  /** The heading that help lists it under. */
  readonly group?: string;
  /** Reads a value. Throws an Error that says what the value must be. */
  readonly parse?: (text: string) => Value;
}

/** By name, without dashes. */
export type FlagTable = Readonly<Record<string, Flag>>;
