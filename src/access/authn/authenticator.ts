import type { X509Certificate } from "node:crypto";
import type { UserInfo } from "../user-info.ts";

/** A client's certificates from its TLS handshake. */
export interface PeerCertificates {
  readonly leaf: X509Certificate;
  /** In the client's order; not trusted by themselves. */
  readonly intermediates: readonly X509Certificate[];
  /**
   * Whether OpenSSL verified the chain (dates, purpose, path) against all of the listener's
   * authorities.
   */
  readonly isVerified: boolean;
}

/**
 * The sources of credentials: header lines as received, names in any case, and the connection's
 * certificates.
 */
export interface CredentialsRequest {
  readonly headers: readonly (readonly [string, string])[];
  readonly peer?: PeerCertificates | undefined;
  /** Absent: all requests without a source share one turn. */
  readonly source?: RequestSource | undefined;
}

/** The request's origin: addresses take turns, and so do an address's connections. */
export interface RequestSource {
  /** The client's address; for IPv6 its /64 network. */
  readonly address: string;
  readonly connection: string;
  /** Calls the listener when the client is gone; at once if it already is. */
  readonly onGone?: ((listener: () => void) => void) | undefined;
}

/** The interface of all authentication. */
export interface Authenticator {
  /**
   * The user; undefined if no credential identifies one, which means 401. Never throws for wrong
   * credentials.
   */
  authenticate(request: CredentialsRequest): Promise<UserInfo | undefined>;
  /** Headers that identify a user, besides the well-known ones. */
  readonly identityHeaders?: IdentityHeaders | undefined;
}

/**
 * Why a credential was refused; a closed list, because it is a metric label. `identity-malformed`:
 * a name that begins or ends with white space, or has a control character or a lone surrogate.
 */
const CREDENTIAL_FAULTS = [
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

/** An authenticator's result. `none`: no credential of its kind. `invalid`: a wrong one. */
export type Attempt =
  | { readonly type: "known"; readonly user: UserInfo }
  | { readonly type: "none" }
  | { readonly type: "invalid"; readonly fault: CredentialFault };

/** Names and prefixes of headers that identify a user, case-insensitive. */
export interface IdentityHeaders {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
}

/** One authenticator in the chain. Never throws. */
export interface RequestAuthenticator {
  readonly identityHeaders?: IdentityHeaders | undefined;
  attempt(request: CredentialsRequest): Promise<Attempt>;
}

/** Authenticates one kind of token. `none`: another kind of token. Never throws. */
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
 * Every known user belongs to `system:authenticated`, last and once, as in kube-apiserver. An
 * unauthenticated user from a front proxy stays unauthenticated.
 */
export function withAuthenticatedGroup(user: UserInfo): UserInfo {
  const { name, groups } = user;
  if (name === ANONYMOUS_USER || groups.some((group) => SAID_GROUPS.includes(group))) return user;
  return { ...user, groups: [...user.groups, AUTHENTICATED_GROUP] };
}

/** `authenticated`, `anonymous`, `no-credentials`, or the credentials' fault. */
type AuthenticationResult = "authenticated" | "anonymous" | "no-credentials" | CredentialFault;

interface AuthenticatorChainOptions {
  /**
   * Tried in this order; kube-apiserver's order is front proxy, client certificate, bearer token,
   * subprotocol token.
   */
  readonly authenticators: readonly RequestAuthenticator[];
  readonly isAnonymousAllowed: boolean;
  /** Called once for each request, with the first fault if there are several. */
  onResult?(result: AuthenticationResult): void;
}

/**
 * Tries each authenticator; the first that identifies the caller wins. Only a request without
 * credentials is anonymous: an invalid token gets 401, as in kube-apiserver.
 */
export class AuthenticatorChain implements Authenticator {
  readonly #options: AuthenticatorChainOptions;

  constructor(options: AuthenticatorChainOptions) {
    this.#options = options;
  }

  get identityHeaders(): IdentityHeaders | undefined {
    return this.#options.authenticators.find(({ identityHeaders }) => identityHeaders)?.identityHeaders;
  }

  async authenticate(request: CredentialsRequest): Promise<UserInfo | undefined> {
    let fault: CredentialFault | undefined;
    for (const authenticator of this.#options.authenticators) {
      const attempt = await authenticator.attempt(request);
      if (attempt.type === "known" && !changesOnTheWay(attempt.user)) {
        this.#options.onResult?.("authenticated");
        return withAuthenticatedGroup(attempt.user);
      }
      if (attempt.type === "known") fault ??= "identity-malformed";
      else if (attempt.type === "invalid") fault ??= attempt.fault;
    }
    const isAnonymous = fault === undefined && this.#options.isAnonymousAllowed;
    this.#options.onResult?.(isAnonymous ? "anonymous" : (fault ?? "no-credentials"));
    return isAnonymous
      ? { name: ANONYMOUS_USER, uid: "", groups: [UNAUTHENTICATED_GROUP], extra: {} }
      : undefined;
  }
}

/**
 * C0, DEL and C1 (RFC 9110 section 5.5 forbids C0 and DEL in header values), and Unicode's line
 * ends.
 */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;
const SPACE_AT_AN_END = /^\s|\s$/;
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Whether an upstream would see another user: header values lose white space at their ends, and
 * UTF-8 has no lone surrogates. `system:masters ` would arrive as `system:masters`.
 */
function changesOnTheWay({ name, uid, groups, extra }: UserInfo): boolean {
  return (
    [name, uid, ...groups].some(isChangedText) ||
    Object.entries(extra).some(([key, values]) => isChangedText(key) || values.some(isChangedText))
  );
}

/** The same check for one text. */
export function isChangedText(text: string): boolean {
  return SPACE_AT_AN_END.test(text) || CONTROL.test(text) || LONE_SURROGATE.test(text);
}
