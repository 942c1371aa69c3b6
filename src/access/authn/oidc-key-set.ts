import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey } from "jose";

/** Fetches a JSON document over verified https, bounded in size and time, no redirect followed. Rejects when there is no answer. */
export type GetJson = (url: string) => Promise<{ readonly status: number; readonly body: unknown }>;

/** Keys are fetched again at this age, and for an unknown key id at most this often. */
export const KEY_SET_MAX_AGE_MS = 600_000;
export const KEY_SET_COOLDOWN_MS = 30_000;
/** The pause after a failed discovery: invalid tokens must not become a stream of requests. */
export const DISCOVERY_COOLDOWN_MS = 5_000;

/** The issuer could not be queried for its keys, or its response was invalid. */
export class IssuerUnreachable extends Error {
  override readonly name = "IssuerUnreachable";
}

/** An issuer's signing keys: found by discovery when the first token comes, fetched again when they are old or one is missing. */
export class OidcKeySet {
  readonly #issuerUrl: string;
  readonly #getJson: GetJson;
  readonly #nowMs: () => number;
  #discovery: Promise<JWTVerifyGetKey> | undefined;
  #failedUntilMs = 0;

  /** `nowMs` is monotonic. */
  constructor(issuerUrl: string, getJson: GetJson, nowMs: () => number = () => performance.now()) {
    this.#issuerUrl = issuerUrl;
    this.#getJson = getJson;
    this.#nowMs = nowMs;
  }

  /** For jose's jwtVerify. Throws IssuerUnreachable when discovery fails. */
  async resolver(): Promise<JWTVerifyGetKey> {
    if (this.#nowMs() < this.#failedUntilMs) throw new IssuerUnreachable("discovery failed a moment ago");
    this.#discovery ??= this.#discover();
    try {
      return await this.#discovery;
    } catch (error) {
      this.#discovery = undefined;
      this.#failedUntilMs = this.#nowMs() + DISCOVERY_COOLDOWN_MS;
      throw error;
    }
  }

  async #discover(): Promise<JWTVerifyGetKey> {
    const { issuer, jwks_uri: keysUrl } = (await this.#get(
      `${this.#issuerUrl.replace(/\/$/, "")}/.well-known/openid-configuration`,
    )) as { issuer?: unknown; jwks_uri?: unknown };
    if (issuer !== this.#issuerUrl) throw new IssuerUnreachable("the discovery document is another issuer's");
    if (typeof keysUrl !== "string" || !URL.canParse(keysUrl) || new URL(keysUrl).protocol !== "https:") {
      throw new IssuerUnreachable("the discovery document names no https jwks_uri");
    }
    return createRemoteJWKSet(new URL(keysUrl), {
      cacheMaxAge: KEY_SET_MAX_AGE_MS,
      cooldownDuration: KEY_SET_COOLDOWN_MS,
      [customFetch]: async (url) => Response.json(await this.#get(url)),
    });
  }

  async #get(url: string): Promise<object> {
    const { status, body } = await this.#getJson(url).catch((error: unknown) => {
      throw new IssuerUnreachable("the issuer could not be asked", { cause: error });
    });
    if (status === 200 && typeof body === "object" && body !== null) return body;
    throw new IssuerUnreachable(`the issuer answered ${status} without a JSON object`);
  }
}
