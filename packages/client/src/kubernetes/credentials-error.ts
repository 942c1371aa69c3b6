/**
 * A plugin or provider gave no credentials, or may not run. The message is client-go's and holds no
 * secret.
 */
export class CredentialsError extends Error {
  override readonly name = "CredentialsError";
}
