/** The command line is wrong; the message names what is valid. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** Something is missing, or too much: how the command is called helps more than the message. */
  readonly showsUsage: boolean;

  constructor(message: string, { showsUsage = false }: { readonly showsUsage?: boolean } = {}) {
    super(message);
    this.showsUsage = showsUsage;
  }
}

/** A shell's status of a program that SIGPIPE ended: the reader of its output has gone. */
export const EXIT_BROKEN_PIPE = 141;
