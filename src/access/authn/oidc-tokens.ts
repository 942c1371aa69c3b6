import { decodeJwt, errors, type JWTVerifyOptions, jwtVerify } from "jose";
import type { OidcAuthentication } from "../../config/authentication.ts";
import {
  type Attempt,
  type CredentialFault,
  invalidCredential,
  NO_CREDENTIAL,
  type TokenAuthenticator,
} from "./authenticator.ts";
import { userOfClaims } from "./oidc-claims.ts";
import type { OidcKeySet } from "./oidc-key-set.ts";

/** kube-apiserver's --oidc-*: JWTs of one issuer, verified with its published keys. Tokens of other issuers are not looked at. */
export class OidcTokens implements TokenAuthenticator {
  readonly #options: OidcAuthentication;
  readonly #keySet: OidcKeySet;

  constructor(options: OidcAuthentication, keySet: OidcKeySet) {
    this.#options = options;
    this.#keySet = keySet;
  }

  async attemptToken(token: string): Promise<Attempt> {
    if (token.split(".").length !== 3) return NO_CREDENTIAL;
    try {
      // Unverified: only to identify the issuer, before its keys are fetched.
      if (decodeJwt(token).iss !== this.#options.issuerUrl) return NO_CREDENTIAL;
    } catch {
      return invalidCredential("token-malformed");
    }
    try {
      const { payload } = await this.#verify(token);
      const user = userOfClaims(payload, this.#options);
      return user === undefined ? invalidCredential("token-claims-wrong") : { type: "known", user };
    } catch (error) {
      return invalidCredential(faultOf(error));
    }
  }

  async #verify(token: string) {
    const { issuerUrl, audiences, signingAlgorithms, clockSkewMs } = this.#options;
    const options: JWTVerifyOptions = {
      issuer: issuerUrl,
      audience: [...audiences],
      algorithms: [...signingAlgorithms],
      clockTolerance: clockSkewMs / 1_000,
      requiredClaims: ["exp"],
    };
    try {
      return await jwtVerify(token, await this.#keySet.resolver(), options);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      return await verifyWithAny(token, error, options);
    }
  }
}

/** A token that names no key, of an issuer that has several: the one that fits is the one that signed it. */
async function verifyWithAny(
  token: string,
  candidates: InstanceType<typeof errors.JWKSMultipleMatchingKeys>,
  options: JWTVerifyOptions,
) {
  for await (const key of candidates) {
    try {
      return await jwtVerify(token, key, options);
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

function faultOf(error: unknown): CredentialFault {
  if (error instanceof errors.JWTExpired) return "token-expired";
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.claim === "nbf") return "token-not-yet-valid";
    return error.claim === "aud" ? "token-audience-wrong" : "token-claims-wrong";
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return "token-algorithm-not-allowed";
  if (error instanceof errors.JWKSNoMatchingKey) return "token-key-unknown";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "token-signature-wrong";
  const isToken =
    error instanceof errors.JWSInvalid ||
    error instanceof errors.JWTInvalid ||
    error instanceof errors.JOSENotSupported;
  return isToken ? "token-malformed" : "authority-unreachable";
}
