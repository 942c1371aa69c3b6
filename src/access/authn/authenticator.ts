import type { X509Certificate } from "node:crypto";
import type { UserInfo } from "../user-info.ts";

/** The certificates that a client showed in its TLS handshake. */
export interface PeerCertificates {
  readonly leaf: X509Certificate;
  /** As sent by the client, in its order; not to be trusted by themselves. */
  readonly intermediates: readonly X509Certificate[];
  /** Whether OpenSSL verified the chain (dates, purpose, path) against every authority that the listener has. */
  readonly isVerified: boolean;
}

/** What credentials are read from: header lines as they came, names in any case, and what the connection showed. */
export interface CredentialsRequest {
  readonly headers: readonly (readonly [string, string])[];
  readonly peer?: PeerCertificates | undefined;
  /** Absent: all such requests take their turns together. */
  readonly source?: RequestSource | undefined;
}

/** Where a request comes from: addresses take turns, and at each its connections. */
export interface RequestSource {
  /** The client's; of IPv6 its /64. */
  readonly address: string;
  readonly connection: string;
}

/** The port behind which every way of knowing a caller stands. */
export interface Authenticator {
  /** The user, or undefined when the request shows no credentials that are known (the answer then is 401). Never throws for those. */
  authenticate(request: CredentialsRequest): Promise<UserInfo | undefined>;
  /** Headers that identify a user, besides the well-known ones. Absent: none. */
  readonly identityHeaders?: IdentityHeaders | undefined;
}

/**
 * Why a credential was refused: a closed list, for it is a metric label. `identity-malformed`: white space at an end, a control
 * character or a lone surrogate in a name.
 */
export const CREDENTIAL_FAULTS = [
  "certificate-unverified",
  "certificate-name-not-allowed",
  "subprotocol-malformed",
  "token-oversized",
  "token-malformed",
  "token-unknown",
  "token-algorithm-not-allowed",
  "token-key-unknown",
  "token-signature-wrong",
  "token-expired",
  "token-not-yet-valid",
  "token-audience-wrong",
  "token-claims-wrong",
  "identity-malformed",
  "authority-unreachable",
] as const;
export type CredentialFault = (typeof CREDENTIAL_FAULTS)[number];

/** What one way of authentication says. `none`: there is no credential of its kind. `invalid`: there is one, and it is wrong. */
export type Attempt =
  | { readonly type: "known"; readonly user: UserInfo }
  | { readonly type: "none" }
  | { readonly type: "invalid"; readonly fault: CredentialFault };

/** Names and name prefixes of headers that identify a user, case-insensitive. */
export interface IdentityHeaders {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
}

/** One way of authentication, a link of the chain. Never throws. */
export interface RequestAuthenticator {
  readonly identityHeaders?: IdentityHeaders | undefined;
  attempt(request: CredentialsRequest): Promise<Attempt>;
}

/** One way of knowing a token. `none`: the token is not of its kind. Never throws. */
export interface TokenAuthenticator {
  attemptToken(token: string, source?: RequestSource): Promise<Attempt>;
}

export const NO_CREDENTIAL: Attempt = { type: "none" };

export function invalidCredential(fault: CredentialFault): Attempt {
  return { type: "invalid", fault };
}

export const AUTHENTICATED_GROUP = "system:authenticated";
export const UNAUTHENTICATED_GROUP = "system:unauthenticated";
export const ANONYMOUS_USER = "system:anonymous";

const SAID_GROUPS: readonly string[] = [AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP];

/**
 * Every known user is in `system:authenticated`, last and once, as kube-apiserver adds it. A front proxy may pass on a user that is not
 * authenticated: that one stays so.
 */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  const { name, groups } = user;
  if (name === ANONYMOUS_USER || groups.some((group) => SAID_GROUPS.includes(group))) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
}
