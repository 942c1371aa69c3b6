/** How a shell completes a value. */
export type Completion =
  | "file"
  | "folder"
  | "context"
  | "cluster"
  | "user"
  | "namespace"
  | "pod"
  | "container";

/** One flag of a command. The parser, help, shell completion, man pages and docs/cli.md read it. */
export interface Flag<Value = unknown> {
  /** One letter, without a dash. */
  readonly short?: string;
  /**
   * The value's placeholder, such as `FILE`. Absent for a switch, which also accepts `=true` and
   * `=false` as kubectl's do.
   */
  readonly value?: string;
  /** Describes the flag: a phrase without the default and without a full stop. */
  readonly help: string;
  /** The default, in command-line form. */
  readonly default?: string;
  readonly isRequired?: true;
  /** The error for a missing required flag: why it is needed, and where to find its value. */
  readonly advice?: string;
  /** Every use adds a value. If absent, the last use counts. */
  readonly isRepeatable?: true;
  /** Omitted from help. */
  readonly isHidden?: true;
  readonly choices?: readonly string[];
  readonly completes?: Completion;
  /** The flag's heading in help. */
  readonly group?: string;
  /** Parses a value. Throws an Error that says what the value must be. */
  readonly parse?: (text: string) => Value;
}

/** By name, without dashes. */
export type FlagTable = Readonly<Record<string, Flag>>;
