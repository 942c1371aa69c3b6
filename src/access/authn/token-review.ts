import { isRecord } from "@sluice/client/internal/api/status-body";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { SharedTurns } from "../../net/shared-turns.ts";
import { DecisionCache } from "../authz/webhook/decision-cache.ts";
import type { UserInfo } from "../user-info.ts";
import {
  type Attempt,
  invalidCredential,
  NO_CREDENTIAL,
  type RequestSource,
  type TokenAuthenticator,
} from "./authenticator.ts";
import { TokenDigests } from "./bearer-tokens.ts";

/**
 * Sends a review, within a time limit; rejects without an answer. The composition root provides the
 * HTTP client.
 */
type AskTokenReview = (review: unknown) => Promise<{ readonly status: number; readonly body: unknown }>;

const RETRY_AFTER_SECONDS = 1;

/**
 * Concurrent TokenReviews of different tokens. Past it reviews wait: addresses take turns, and so
 * do an address's connections.
 */
const MAX_REVIEWS_IN_FLIGHT = 32;
/** TokenReviews that wait. Past it the newest of the longest queue gets 429 with Retry-After. */
const MAX_WAITING_REVIEWS = 1_000;

interface TokenReviewOptions {
  readonly version: "v1" | "v1beta1";
  /** A token must name one of them; empty means the API server's own audience. */
  readonly audiences: readonly string[];
  readonly cacheTtlMs: number;
  readonly failureCacheTtlMs: number;
  readonly maxCachedTokens: number;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly epochMs: () => number;
  /** The API server did not answer, or gave an invalid answer. The error contains no token. */
  onFailure(error: Error): void;
}

/**
 * Authenticates tokens by TokenReview; equal tokens share one review. Caches answers by keyed
 * digest, never by token. Without a valid answer the user is unknown, and nothing is cached.
 */
export class TokenReviews implements TokenAuthenticator {
  readonly #ask: AskTokenReview;
  readonly #options: TokenReviewOptions;
  readonly #digests = new TokenDigests();
  readonly #known: DecisionCache<Attempt>;
  /** Separate from the known tokens, which a stranger's wrong tokens would evict. */
  readonly #unknown: DecisionCache<Attempt>;
  readonly #turns = new SharedTurns<Attempt>(
    { seats: MAX_REVIEWS_IN_FLIGHT, maxWaiting: MAX_WAITING_REVIEWS },
    () => WIRE_ERRORS["token-review-busy"].streaming({ seconds: RETRY_AFTER_SECONDS }),
  );

  constructor(ask: AskTokenReview, options: TokenReviewOptions) {
    this.#ask = ask;
    this.#options = options;
    this.#known = new DecisionCache(options.maxCachedTokens, options.nowMs);
    this.#unknown = new DecisionCache(options.maxCachedTokens, options.nowMs);
  }

  /** Rejects with StatusError 429 if too many wait, or too long: an unchecked token is not wrong. */
  attemptToken(
    token: string,
    { address, connection, onGone }: RequestSource = { address: "", connection: "" },
  ): Promise<Attempt> {
    const digest = this.#digests.of(token);
    const cached = this.#known.get(digest) ?? this.#unknown.get(digest);
    if (cached !== undefined) return Promise.resolve(cached);
    const place = { flow: address, lane: connection, onGone };
    return this.#turns.run(digest, place, () => this.#review(token, digest));
  }

  /**
   * The cached answer ends at the token's expiry. API servers accept it a little longer, so they
   * are asked then, but not for each request.
   */
  #ttlOf(token: string): number {
    const { cacheTtlMs, failureCacheTtlMs, epochMs } = this.#options;
    const leftMs = (expiryMsOf(token) ?? Number.POSITIVE_INFINITY) - epochMs();
    return Math.min(cacheTtlMs, Math.max(leftMs, failureCacheTtlMs));
  }

  async #review(token: string, digest: string): Promise<Attempt> {
    const { version, audiences, failureCacheTtlMs, onFailure } = this.#options;
    const spec = { token, ...(audiences.length > 0 && { audiences }) };
    try {
      const answer = await this.#ask({
        apiVersion: `authentication.k8s.io/${version}`,
        kind: "TokenReview",
        spec,
      });
      const user = userOfReview(answer, audiences);
      if (user === undefined) {
        this.#unknown.set(digest, NO_CREDENTIAL, failureCacheTtlMs);
        return NO_CREDENTIAL;
      }
      const attempt: Attempt = { type: "known", user: { ...user, expiresAtMs: endOf(expiryMsOf(token)) } };
      this.#known.set(digest, attempt, this.#ttlOf(token));
      return attempt;
    } catch (error) {
      onFailure(error instanceof Error ? error : new Error(String(error)));
      return invalidCredential("authority-unreachable");
    }
  }
}

/** Kubernetes accepts a service account's token this long past its `exp`, because clocks differ. */
const TOKEN_LEEWAY_MS = 60_000;

const endOf = (expiryMs: number | undefined): number | undefined =>
  expiryMs === undefined ? undefined : expiryMs + TOKEN_LEEWAY_MS;

/** The unverified claim `exp` of a JWT; undefined if it is missing or not a time. */
function expiryMsOf(token: string): number | undefined {
  try {
    const { exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    return typeof exp === "number" && Math.abs(exp) <= Number.MAX_SAFE_INTEGER ? exp * 1_000 : undefined;
  } catch {
    return undefined;
  }
}

/** The user; undefined if the token is invalid. Throws Error if the answer is unclear. */
function userOfReview(
  { status: code, body }: { status: number; body: unknown },
  audiences: readonly string[],
): UserInfo | undefined {
  if (code !== 200 && code !== 201) throw new Error(`the API server answered ${code} to a TokenReview`);
  const { kind, status } = (body ?? {}) as { kind?: unknown; status?: ReviewStatus };
  if (kind !== undefined && kind !== "TokenReview") throw new Error("the answer is not a TokenReview");
  if (!isRecord(status)) throw new Error("the TokenReview has no status");
  const { user } = status as ReviewStatus;
  const authenticated = status.authenticated ?? false;
  if (typeof authenticated !== "boolean") throw wrongType();
  const named = strings(status.audiences);
  if (!authenticated) return undefined;
  if (typeof user?.username !== "string" || user.username === "") {
    throw new Error("the TokenReview names no user");
  }
  // An API server without audience support omits the audiences, which means that it did not check
  // them.
  const isForUs = audiences.length === 0 || named.some((one) => audiences.includes(one));
  if (!isForUs) return undefined;
  return {
    name: user.username,
    uid: textOf(user.uid),
    groups: strings(user.groups),
    extra: extraOf(user.extra),
  };
}

interface ReviewStatus {
  readonly authenticated?: unknown;
  readonly audiences?: unknown;
  readonly user?: {
    readonly username?: unknown;
    readonly uid?: unknown;
    readonly groups?: unknown;
    readonly extra?: unknown;
  };
}

function textOf(value: unknown): string {
  if (typeof (value ?? "") !== "string") throw wrongType();
  return (value ?? "") as string;
}

function strings(value: unknown): string[] {
  if (!Array.isArray(value ?? [])) throw wrongType();
  return ((value ?? []) as unknown[]).map((item) => {
    if (typeof item !== "string") throw wrongType();
    return item;
  });
}

function extraOf(value: unknown): Record<string, string[]> {
  if (!isRecord(value ?? {})) throw wrongType();
  return Object.fromEntries(Object.entries(value ?? {}).map(([key, values]) => [key, strings(values)]));
}

/** Kubernetes cannot decode such an answer. A user without some of its groups would escape deny rules. */
function wrongType(): Error {
  return new Error("a part of the TokenReview has a wrong type");
}
