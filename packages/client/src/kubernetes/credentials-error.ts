/**
 * A plugin or provider gave no credentials, or may not run; a file, certificate, key or proxy of a
 * kubeconfig cannot be used. The message is client-go's where it has one, and holds no secret.
 */
export class CredentialsError extends Error {
  override readonly name = "CredentialsError";
}
