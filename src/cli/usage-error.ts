/** The command line is wrong; the message names what is valid. Exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
