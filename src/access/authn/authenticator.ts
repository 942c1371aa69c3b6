/** Who makes a request. Kubernetes' user.Info. */
export interface UserInfo {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** What credentials are read from: header lines as they came, names in any case. */
export interface CredentialsRequest {
  readonly headers: readonly (readonly [string, string])[];
}

/** The port behind which every way of knowing a caller stands. */
export interface Authenticator {
  /** The user, or undefined when the request shows no credentials that are known (the answer then is 401). Never throws for those. */
  authenticate(request: CredentialsRequest): Promise<UserInfo | undefined>;
}

export const AUTHENTICATED_GROUP = "system:authenticated";

/** Every known user is in `system:authenticated`, last and once, as kube-apiserver adds it. */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  if (user.groups.includes(AUTHENTICATED_GROUP)) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
}
