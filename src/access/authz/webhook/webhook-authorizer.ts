import { WIRE_ERRORS } from "../../../api/wire-errors/wire-errors.ts";
import { SharedTurns } from "../../../net/shared-turns.ts";
import type { Attributes, Authorizer, Decision, UserRules } from "../authorizer.ts";
import { DecisionCache } from "./decision-cache.ts";

/** v1beta1 differs in one member of its spec: `group` in place of v1's `groups`. */
type SubjectAccessReviewVersion = "v1" | "v1beta1";

/** The `spec` of an authorization.k8s.io SubjectAccessReview. Omits empty members, as Go does. */
function reviewSpecOf(
  attributes: Attributes,
  version: SubjectAccessReviewVersion,
): Readonly<Record<string, unknown>> {
  const { user, verb, path, namespace, apiGroup, apiVersion, resource, subresource, name } = attributes;
  const groups = version === "v1beta1" ? { group: user.groups } : { groups: user.groups };
  const subject = { user: user.name, uid: user.uid, ...groups, extra: user.extra };
  const asked = attributes.isResourceRequest
    ? {
        resourceAttributes: filled({
          namespace,
          verb,
          group: apiGroup,
          version: apiVersion,
          resource,
          subresource,
          name,
        }),
      }
    : { nonResourceAttributes: filled({ path, verb }) };
  return { ...filled(subject), ...asked };
}

function subjectAccessReview(
  spec: Readonly<Record<string, unknown>>,
  version: SubjectAccessReviewVersion,
): unknown {
  return { kind: "SubjectAccessReview", apiVersion: `authorization.k8s.io/${version}`, spec };
}

interface ReviewStatus {
  readonly allowed?: unknown;
  readonly denied?: unknown;
  readonly reason?: unknown;
  readonly evaluationError?: unknown;
}

/** Reads the review's decision. Throws Error for an invalid status. */
function decisionOfReview(body: unknown): Decision {
  const { kind, status } = (body ?? {}) as { kind?: unknown; status?: ReviewStatus };
  if (kind !== undefined && kind !== "SubjectAccessReview")
    throw new Error("the answer is not a SubjectAccessReview");
  if (typeof status?.allowed !== "boolean") throw new Error("the answer has no status.allowed");
  const { allowed } = status;
  const denied = status.denied ?? false;
  if (typeof denied !== "boolean") throw new Error("the answer's status.denied is not a boolean");
  // kube-apiserver refuses this contradictory answer, too.
  if (allowed && denied)
    throw new Error("webhook subject access review returned both allow and deny response");
  // Kubernetes cannot decode an answer with a field of a wrong type.
  const [reason, evaluationError] = [status.reason ?? "", status.evaluationError ?? ""];
  if (typeof reason !== "string" || typeof evaluationError !== "string")
    throw new Error("a part of the answer's status has a wrong type");
  return {
    decision: allowed ? "allow" : denied ? "deny" : "no-opinion",
    reason: reason.slice(0, MAX_REASON_CHARACTERS),
  };
}

/** The reason becomes part of an answer of at most 1,024 bytes. */
const MAX_REASON_CHARACTERS = 512;

function filled(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isEmpty = (value: unknown) =>
    value === "" || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value)));
}

/** Sends a review; rejects without an answer. The composition root provides the HTTP client. */
type AskWebhook = (review: unknown) => Promise<{ readonly status: number; readonly body: unknown }>;

interface WebhookAuthorizerOptions {
  readonly version: SubjectAccessReviewVersion;
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  readonly maxCachedDecisions: number;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  /** The webhook did not answer, or gave an invalid answer. The error contains no secret. */
  onFailure(error: Error): void;
}

/**
 * Concurrent SubjectAccessReviews of different requests. Past it they wait, and users take turns.
 */
const MAX_ACCESS_REVIEWS_IN_FLIGHT = 64;
/**
 * SubjectAccessReviews that wait. Past it the newest of the longest queue gets 429 with
 * Retry-After.
 */
const MAX_WAITING_ACCESS_REVIEWS = 1_000;
const RETRY_AFTER_SECONDS = 1;

/**
 * Attributes whose decision is cached, so that a caller cannot fill the cache. Past it the webhook
 * is queried every time.
 */
const MAX_CACHED_ATTRIBUTE_CHARACTERS = 10_000;

/**
 * `--authorization-mode=Webhook`: caches SubjectAccessReviews, and shares concurrent equal ones.
 * Fails closed: without a valid answer it has no opinion, caches nothing and calls `onFailure`.
 */
export class WebhookAuthorizer implements Authorizer {
  readonly #ask: AskWebhook;
  readonly #options: WebhookAuthorizerOptions;
  readonly #cache: DecisionCache<Decision>;
  readonly #turns = new SharedTurns<Decision>(
    { seats: MAX_ACCESS_REVIEWS_IN_FLIGHT, maxWaiting: MAX_WAITING_ACCESS_REVIEWS },
    () => WIRE_ERRORS["authorizer-busy"].streaming({ seconds: RETRY_AFTER_SECONDS }),
  );

  constructor(ask: AskWebhook, options: WebhookAuthorizerOptions) {
    this.#ask = ask;
    this.#options = options;
    this.#cache = new DecisionCache(options.maxCachedDecisions, options.nowMs);
  }

  get reviewsInFlight(): number {
    return this.#turns.size;
  }

  /** Rejects with StatusError 429 if too many wait, or too long: what was not judged is not denied. */
  async authorize(attributes: Attributes): Promise<Decision> {
    const key = keyOf(attributes);
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const { user, onGone } = attributes;
    return this.#turns.run(key, { flow: user.name, onGone }, () => this.#review(attributes, key));
  }

  async rulesFor(): Promise<UserRules> {
    const evaluationError = "webhook authorizer does not support user rule resolution";
    return { resourceRules: [], nonResourceRules: [], incomplete: true, evaluationError };
  }

  async #review(attributes: Attributes, key: string): Promise<Decision> {
    const { version, authorizedTtlMs, unauthorizedTtlMs } = this.#options;
    try {
      const spec = reviewSpecOf(attributes, version);
      const { status, body } = await this.#ask(subjectAccessReview(spec, version));
      if (status < 200 || status > 299) throw new Error(`the webhook answered with ${status}`);
      const decision = decisionOfReview(body);
      const ttlMs = decision.decision === "allow" ? authorizedTtlMs : unauthorizedTtlMs;
      if (isCacheable(attributes)) this.#cache.set(key, decision, ttlMs, attributes.user.name);
      return decision;
    } catch (error) {
      this.#options.onFailure(error instanceof Error ? error : new Error(String(error)));
      const reason = "the authorization webhook gave no answer";
      return { decision: "no-opinion", reason, error: reason };
    }
  }
}

/** Contains every attribute, so that no user gets another user's answer. */
function keyOf(attributes: Attributes): string {
  const { user, verb, isResourceRequest, path } = attributes;
  const { namespace, apiGroup, apiVersion, resource, subresource, name } = attributes;
  const asked = isResourceRequest ? [namespace, apiGroup, apiVersion, resource, subresource, name] : path;
  return JSON.stringify([user.name, user.uid, user.groups, user.extra, verb, asked]);
}

/** Counts only the parts that a caller chooses, and not its identity. */
function isCacheable(attributes: Attributes): boolean {
  const { namespace, verb, apiGroup, apiVersion, resource, subresource, name, path } = attributes;
  const chosen = attributes.isResourceRequest
    ? [namespace, verb, apiGroup, apiVersion, resource, subresource, name]
    : [path, verb];
  return chosen.join("").length < MAX_CACHED_ATTRIBUTE_CHARACTERS;
}
