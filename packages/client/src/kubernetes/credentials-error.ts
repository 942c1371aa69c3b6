import { systemErrorText } from "../config/system-error.ts";
/**
 * A plugin or provider gave no credentials, or may not run. The message is client-go's and holds no
 * secret.
 */
export class CredentialsError extends Error {
  override readonly name = "CredentialsError";
}

/** For a `catch`: rethrows the error's message as a CredentialsError. */
export function asCredentialsError(error: unknown): never {
  throw new CredentialsError(systemErrorText(error), { cause: error });
}
