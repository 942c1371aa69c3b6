/** A plugin or a provider gave no credentials, or may not be asked. The message is client-go's and says all; it holds no secret. */
export class CredentialsError extends Error {}

/** For a `catch`: the same message as a CredentialsError. */
export function asCredentialsError(error: unknown): never {
  throw new CredentialsError((error as Error).message, { cause: error });
}
