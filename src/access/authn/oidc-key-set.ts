import { createLocalJWKSet, errors, type JSONWebKeySet } from "jose";
import type { JwtIssuer } from "../../config/jwt-authenticators.ts";

/**
 * Fetches a JSON document over verified https, within limits of size and time; follows no redirect.
 * Rejects without an answer.
 */
export type GetJson = (url: string) => Promise<{ readonly status: number; readonly body: unknown }>;
/** jose's function that finds the key for a token's header. */
export type KeyResolver = ReturnType<typeof createLocalJWKSet>;

/** Keys are fetched again at this age; if that fails, the known keys stay. */
const KEY_SET_MAX_AGE_MS = 600_000;
/**
 * Fetches of an issuer's keys for unverifiable tokens in a burst, and then one each second. Past it
 * the known keys judge the token.
 */
const KEY_SET_FETCHES = 10;
const KEY_SET_FETCH_EVERY_MS = 1_000;
/** The pause after the issuer failed: invalid tokens must not flood it with requests. */
const ISSUER_COOLDOWN_MS = 5_000;

/** The issuer's keys could not be fetched, or the response was invalid. */
class IssuerUnreachable extends Error {
  override readonly name = "IssuerUnreachable";
}

interface KnownKeys {
  readonly resolver: KeyResolver;
  readonly fetchedMs: number;
}

/**
 * An issuer's signing keys, discovered at the first token. Fetched again when they are old, or when
 * none verifies a token, as in kube-apiserver.
 */
export class OidcKeySet {
  readonly #issuerUrl: string;
  readonly #discoveryUrl: string;
  readonly #getJson: GetJson;
  readonly #nowMs: () => number;
  #keysUrl: string | undefined;
  #failedUntilMs = 0;
  #keys: KnownKeys | undefined;
  #fetching: Promise<KnownKeys> | undefined;
  #fetches = KEY_SET_FETCHES;
  #countedMs: number;

  /** `nowMs` is monotonic. By default the discovery document is below the issuer's URL. */
  constructor(
    { issuerUrl, discoveryUrl }: Pick<JwtIssuer, "issuerUrl" | "discoveryUrl">,
    getJson: GetJson,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#issuerUrl = issuerUrl;
    this.#discoveryUrl = discoveryUrl ?? `${issuerUrl.replace(/\/$/, "")}/.well-known/openid-configuration`;
    this.#getJson = getJson;
    this.#nowMs = nowMs;
    this.#countedMs = nowMs();
  }

  /**
   * Calls `verify` with the keys; if none verifies the token, once more with newer keys. Throws its
   * errors, and IssuerUnreachable if no keys are known.
   */
  async verified<Result>(verify: (keys: KeyResolver) => Promise<Result>): Promise<Result> {
    const known = await this.#currentKeys();
    try {
      return await verify(known.resolver);
    } catch (error) {
      if (!isOfAnotherKey(error)) throw error;
      const newer = this.#keys === known ? await this.#fetchedAgain() : this.#keys;
      if (newer === undefined) throw error;
      return await verify(newer.resolver);
    }
  }

  async #currentKeys(): Promise<KnownKeys> {
    const keys = this.#keys;
    if (keys === undefined) return await this.#fetch();
    if (this.#nowMs() - keys.fetchedMs < KEY_SET_MAX_AGE_MS) return keys;
    return (await this.#fetchedAgain()) ?? keys;
  }

  /** Undefined if the fetch failed, or if the rate limit forbids it. */
  async #fetchedAgain(): Promise<KnownKeys | undefined> {
    if (this.#fetching === undefined && !this.#mayFetch()) return undefined;
    return await this.#fetch().catch(() => undefined);
  }

  #mayFetch(): boolean {
    const nowMs = this.#nowMs();
    const gained = Math.floor((nowMs - this.#countedMs) / KEY_SET_FETCH_EVERY_MS);
    this.#countedMs += gained * KEY_SET_FETCH_EVERY_MS;
    this.#fetches = Math.min(KEY_SET_FETCHES, this.#fetches + gained);
    if (this.#fetches === 0) return false;
    this.#fetches -= 1;
    return true;
  }

  #fetch(): Promise<KnownKeys> {
    this.#fetching ??= this.#fetchKeys().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchKeys(): Promise<KnownKeys> {
    if (this.#nowMs() < this.#failedUntilMs) throw new IssuerUnreachable("the issuer failed a moment ago");
    try {
      this.#keysUrl ??= await this.#discover();
      const keys = (await this.#get(this.#keysUrl)) as JSONWebKeySet;
      this.#keys = { resolver: createLocalJWKSet(keys), fetchedMs: this.#nowMs() };
      return this.#keys;
    } catch (error) {
      this.#failedUntilMs = this.#nowMs() + ISSUER_COOLDOWN_MS;
      // The keys may have moved, or the place may have been wrong.
      this.#keysUrl = undefined;
      if (error instanceof IssuerUnreachable) throw error;
      throw new IssuerUnreachable("the issuer's keys are no key set", { cause: error });
    }
  }

  async #discover(): Promise<string> {
    const { issuer, jwks_uri: keysUrl } = (await this.#get(this.#discoveryUrl)) as {
      issuer?: unknown;
      jwks_uri?: unknown;
    };
    if (issuer !== this.#issuerUrl) throw new IssuerUnreachable("the discovery document is another issuer's");
    if (typeof keysUrl !== "string" || !URL.canParse(keysUrl) || new URL(keysUrl).protocol !== "https:") {
      throw new IssuerUnreachable("the discovery document names no https jwks_uri");
    }
    return keysUrl;
  }

  async #get(url: string): Promise<object> {
    const { status, body } = await this.#getJson(url).catch((error: unknown) => {
      throw new IssuerUnreachable("the issuer could not be asked", { cause: error });
    });
    if (status === 200 && typeof body === "object" && body !== null) return body;
    throw new IssuerUnreachable(`the issuer answered ${status} without a JSON object`);
  }
}

function isOfAnotherKey(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed;
}
