import type { UserInfo } from "../user-info.ts";
import {
  ANONYMOUS_USER,
  type Authenticator,
  type CredentialFault,
  type CredentialsRequest,
  type IdentityHeaders,
  type RequestAuthenticator,
  UNAUTHENTICATED_GROUP,
  withAuthenticatedGroup,
} from "./authenticator.ts";
import { changesOnTheWay } from "./identity-text.ts";

/** `authenticated`, `anonymous`, `no-credentials`, or the credentials' fault. */
type AuthenticationResult = "authenticated" | "anonymous" | "no-credentials" | CredentialFault;

interface AuthenticatorChainOptions {
  /**
   * Tried in order; kube-apiserver's is front proxy, client certificate, bearer token, subprotocol
   * token.
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
