import { compactVerify, errors } from "jose";
import type { JwtIssuer } from "../../config/jwt-authenticators.ts";
import type { UserInfo } from "../user-info.ts";
import {
  type Attempt,
  type CredentialFault,
  invalidCredential,
  NO_CREDENTIAL,
  type TokenAuthenticator,
} from "./authenticator.ts";
import type { KeyResolver, OidcKeySet } from "./oidc-key-set.ts";

/** A string, or a character that marks a position in the document. */
const TOKEN = /"(?:[^"\\]|\\.?)*"?|[{}[\],:]/gs;

/**
 * Parses a JSON object. Throws for anything else, a byte order mark, invalid UTF-8, and a duplicate
 * name, because readers differ in which value counts.
 */
function parseStrictObject(bytes: Uint8Array): Record<string, unknown> {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("not an object");
  requireUniqueNames(text);
  return value as Record<string, unknown>;
}

/** `text` is valid JSON. */
function requireUniqueNames(text: string): void {
  const open: (Set<string> | undefined)[] = [];
  let previous = "";
  for (const [token] of text.matchAll(TOKEN)) {
    const names = open.at(-1);
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (names !== undefined && token.startsWith('"') && previous !== ":") {
      const name = JSON.parse(token) as string;
      if (names.has(name)) throw new Error("an object has a name twice");
      names.add(name);
    }
    previous = token;
  }
}

/** How far an issuer's clock may be ahead, for `nbf`. */
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
 * Throws for tokens that kube-apiserver cannot read. jose checks the header, except for two faults.
 */
function claimsOf(token: string): Claims {
  const [, header = "", payload = ""] = JWT.exec(token) ?? [];
  const { b64 = true, kid, nonce } = parseStrictObject(Buffer.from(header, "base64url"));
  // Matters only if `crit` names it; the payload would then not be base64url.
  if (b64 !== true) throw new Error("another form of the payload");
  if (![kid, nonce].every(isTextOrAbsent)) throw new Error("the header's kid or nonce is not a string");
  const claims = parseStrictObject(Buffer.from(payload, "base64url"));
  requireReadableClaims(claims);
  return claims;
}

/** The claims that kube-apiserver reads of each token, whether or not it uses them. */
const READ_CLAIMS = new Set("iss sub aud exp iat nbf nonce at_hash _claim_names _claim_sources".split(" "));
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Throws if Go's decoder would fail, and for names that Go treats as equal: `EXP` and `exp` are the
 * same there.
 */
function requireReadableClaims(claims: Claims): void {
  for (const name of Object.keys(claims)) {
    // Converts to capitals first, as Go does: the long s is an s.
    const folded = name.toUpperCase().toLowerCase();
    if (folded !== name && READ_CLAIMS.has(folded)) throw new Error("a claim's name in other letters");
  }
  const { iat = 0, sub, nonce, at_hash, _claim_names, _claim_sources } = claims;
  const issued = typeof iat === "string" && NUMBER.test(iat) ? Number(iat) : iat;
  if (!isTime(issued) || ![sub, nonce, at_hash].every(isTextOrAbsent)) throw new Error("a claim's type");
  const [names, sources] = [_claim_names, _claim_sources].map((value) => Object(value ?? {}) as Claims);
  const areNamed = Object.values(names ?? {}).every(
    (source) => typeof source === "string" && Object.hasOwn(sources ?? {}, source),
  );
  if (!areNamed) throw new Error("a distributed claim without its source");
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string";
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

/** A number beyond 2^53 is not a time: JSON reads 1e999 as Infinity, which would never expire. */
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

type Claims = Readonly<Record<string, unknown>>;
type ClaimOptions = Pick<
  JwtIssuer,
  "usernameClaim" | "usernamePrefix" | "groupsClaim" | "groupsPrefix" | "uidClaim" | "requiredClaims"
>;

/** The user of verified claims, as in kube-apiserver; undefined if the claims do not identify one. */
export function userOfClaims(claims: Claims, options: ClaimOptions): UserInfo | undefined {
  const { usernameClaim, usernamePrefix, groupsClaim, groupsPrefix, uidClaim, requiredClaims } = options;
  const hasRequired = Object.entries(requiredClaims).every(
    ([name, value]) => claimOf(claims, name) === value,
  );
  const name = claimOf(claims, usernameClaim);
  if (!hasRequired || typeof name !== "string" || name === "") return undefined;
  // An unverified address may belong to another person. Neither the string "false" nor null
  // verifies it.
  if (
    usernameClaim === "email" &&
    ![undefined, true].includes(claimOf(claims, "email_verified") as undefined)
  ) {
    return undefined;
  }
  const groups = groupsClaim === undefined ? [] : groupsOf(claimOf(claims, groupsClaim));
  const uid = uidClaim === undefined ? "" : claimOf(claims, uidClaim);
  if (groups === undefined || typeof uid !== "string") return undefined;
  return {
    name: usernamePrefix + name,
    uid,
    groups: groups.map((group) => groupsPrefix + group),
    extra: {},
  };
}

/** A single group may be a plain string. */
function groupsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined || value === null) return [];
  if (typeof value === "string") return [value];
  const isList = Array.isArray(value) && value.every((item) => typeof item === "string");
  return isList ? value : undefined;
}

function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}
