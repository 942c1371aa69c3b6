import { compactVerify, errors } from "jose";
import type { JwtIssuer } from "../../config/jwt-authenticators.ts";
import {
  type Attempt,
  type CredentialFault,
  invalidCredential,
  NO_CREDENTIAL,
  type TokenAuthenticator,
} from "./authenticator.ts";
import { type Claims, userOfClaims } from "./oidc-claims.ts";
import type { KeyResolver, OidcKeySet } from "./oidc-key-set.ts";
import { parseStrictObject } from "./strict-json.ts";

/** How far an issuer's clock may be ahead in `nbf`; kube-apiserver's value (go-oidc). */
const NOT_BEFORE_SKEW_SECONDS = 300;

/** Unpadded base64url (RFC 7515 section 2). */
const JWT = /^([\w-]+)\.([\w-]+)\.([\w-]*)$/;

/** An issuer, and its published keys. */
export interface KeyedIssuer {
  readonly issuer: JwtIssuer;
  readonly keySet: OidcKeySet;
}

/**
 * Verifies JWTs with the keys of their issuers. Ignores tokens of unknown issuers. Reads each token
 * once, because reading for every issuer would multiply the work that an invalid token causes.
 */
export class OidcTokens implements TokenAuthenticator {
  readonly #issuers: ReadonlyMap<unknown, KeyedIssuer>;

  /** Expects one entry for each issuer. */
  constructor(issuers: readonly KeyedIssuer[]) {
    this.#issuers = new Map(issuers.map((each) => [each.issuer.issuerUrl, each]));
  }

  async attemptToken(token: string): Promise<Attempt> {
    if (token.split(".").length !== 3) return NO_CREDENTIAL;
    let claims: Claims;
    try {
      claims = claimsOf(token);
    } catch {
      return invalidCredential("token-malformed");
    }
    // Reads the unverified claim only to identify the issuer, before its keys are fetched.
    const found = this.#issuers.get(claims.iss);
    if (found === undefined) return NO_CREDENTIAL;
    const { issuer, keySet } = found;
    try {
      const algorithms = [...issuer.signingAlgorithms];
      await keySet.verified((keys) => verify(token, keys, algorithms));
    } catch (error) {
      return invalidCredential(faultOf(error));
    }
    const fault = faultOfClaims(claims, issuer, Date.now() / 1_000);
    if (fault !== undefined) return invalidCredential(fault);
    const user = userOfClaims(claims, issuer);
    if (user === undefined) return invalidCredential("token-claims-wrong");
    const expiresAtMs = Number(claims.exp) * 1_000 + issuer.clockSkewMs;
    return { type: "known", user: { ...user, expiresAtMs } };
  }
}

/**
 * Throws for tokens that kube-apiserver cannot read. jose checks the header, but for two faults.
 */
function claimsOf(token: string): Claims {
  const [, header = "", payload = ""] = JWT.exec(token) ?? [];
  const { b64 = true } = parseStrictObject(Buffer.from(header, "base64url"));
  // Only relevant if `crit` names it; the payload would not be base64url.
  if (b64 !== true) throw new Error("another form of the payload");
  return parseStrictObject(Buffer.from(payload, "base64url"));
}

async function verify(token: string, keys: KeyResolver, algorithms: string[]): Promise<void> {
  try {
    await compactVerify(token, keys, { algorithms });
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    await verifyWithAny(token, error, algorithms);
  }
}

/** For a token without a key id, from an issuer with several keys: tries them all. */
async function verifyWithAny(
  token: string,
  candidates: InstanceType<typeof errors.JWKSMultipleMatchingKeys>,
  algorithms: string[],
): Promise<void> {
  for await (const key of candidates) {
    try {
      await compactVerify(token, key, { algorithms });
      return;
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new errors.JWSSignatureVerificationFailed();
}

function faultOfClaims(
  { aud, exp, nbf }: Claims,
  { audiences, clockSkewMs }: JwtIssuer,
  nowSeconds: number,
): CredentialFault | undefined {
  const named: readonly unknown[] = [aud].flat();
  if (!named.every((audience) => typeof audience === "string")) return "token-claims-wrong";
  if (!named.some((audience) => audiences.includes(audience))) return "token-audience-wrong";
  if (!isTime(exp) || (nbf !== undefined && nbf !== null && !isTime(nbf))) return "token-claims-wrong";
  if (exp + clockSkewMs / 1_000 <= nowSeconds) return "token-expired";
  const isEarly = isTime(nbf) && nbf - Math.max(NOT_BEFORE_SKEW_SECONDS, clockSkewMs / 1_000) > nowSeconds;
  return isEarly ? "token-not-yet-valid" : undefined;
}

/** Beyond 2^53 it is not a time: JSON reads 1e999 as Infinity, which would never expire. */
function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function faultOf(error: unknown): CredentialFault {
  if (error instanceof errors.JOSEAlgNotAllowed) return "token-algorithm-not-allowed";
  if (error instanceof errors.JWKSNoMatchingKey) return "token-key-unknown";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "token-signature-wrong";
  const isToken = error instanceof errors.JWSInvalid || error instanceof errors.JOSENotSupported;
  return isToken ? "token-malformed" : "authority-unreachable";
}
