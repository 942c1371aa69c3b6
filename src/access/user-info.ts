/** The user of a request. Kubernetes' user.Info. */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
  /**
   * When the credentials expire, in milliseconds since 1970; absent: never, or it is unknown. API servers
   * accept a token a little longer.
   */
  readonly expiresAtMs?: number | undefined;
}
