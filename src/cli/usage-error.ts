/** The command line cannot be understood; the message says what would be right. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
