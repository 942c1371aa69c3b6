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

/** A shell's status for a program that SIGPIPE ended. */
export const EXIT_BROKEN_PIPE = 141;
