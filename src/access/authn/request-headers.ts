import type { Authentication } from "../../config/sections/authentication.ts";
import {
  type Attempt,
  type CredentialsRequest,
  type IdentityHeaders,
  invalidCredential,
  NO_CREDENTIAL,
  type RequestAuthenticator,
} from "./authenticator.ts";
import { type CertificateAuthority, subjectOf } from "./certificate-authority.ts";
import { extraOf, headerText } from "./extra-headers.ts";

type RequestHeaderOptions = Omit<NonNullable<Authentication["requestHeader"]>, "clientCAFile">;

/**
 * kube-apiserver's --requestheader-*: a proxy names its user in headers. Requires a certificate of
 * the proxy's own authority with an allowed name; from other clients the headers mean nothing.
 */
export class RequestHeaders implements RequestAuthenticator {
  readonly #authority: CertificateAuthority;
  readonly #options: RequestHeaderOptions;

  constructor(authority: CertificateAuthority, options: RequestHeaderOptions) {
    this.#authority = authority;
    this.#options = options;
  }

  /** The headers in which a proxy names its users; the gateway removes them before it forwards. */
  get identityHeaders(): IdentityHeaders {
    const { usernameHeaders, uidHeaders, groupHeaders, extraHeaderPrefixes } = this.#options;
    return { names: [...usernameHeaders, ...uidHeaders, ...groupHeaders], prefixes: extraHeaderPrefixes };
  }

  async attempt({ peer, headers }: CredentialsRequest): Promise<Attempt> {
    const { usernameHeaders, uidHeaders, groupHeaders, extraHeaderPrefixes, allowedNames } = this.#options;
    if (peer === undefined) return NO_CREDENTIAL;
    if (!this.#authority.hasIssued(peer)) return invalidCredential("certificate-unverified");
    const commonName = subjectOf(peer.leaf)?.commonName;
    if (commonName === undefined) return invalidCredential("certificate-unverified");
    if (allowedNames.length > 0 && !allowedNames.includes(commonName)) {
      return invalidCredential("certificate-name-not-allowed");
    }
    // Trims the decoded text: in Latin-1 a UTF-8 byte may look like a no-break space.
    const valuesOf = (names: readonly string[]) =>
      names.flatMap((wanted) =>
        headers
          .filter(([name]) => name.toLowerCase() === wanted.toLowerCase())
          .map(([, value]) => headerText(value)),
      );
    const firstOf = (names: readonly string[]) =>
      valuesOf(names)
        .map((value) => value.trim())
        .find((value) => value !== "") ?? "";
    const name = firstOf(usernameHeaders);
    if (name === "") return NO_CREDENTIAL;
    const groups = valuesOf(groupHeaders).filter((group) => group !== "");
    const user = { name, uid: firstOf(uidHeaders), groups, extra: extraOf(headers, extraHeaderPrefixes) };
    return { type: "known", user };
  }
}
