import type { Range } from "./limits.ts";
import { notAmong, type Section } from "./section.ts";
import {
  REVIEW_VERSIONS,
  type ReviewVersion,
  readWebhookTarget,
  type WebhookTarget,
} from "./webhook-target.ts";

export const AUTHORIZATION_MODES = ["AlwaysAllow", "AlwaysDeny", "RBAC", "Webhook"] as const;
export type AuthorizationMode = (typeof AUTHORIZATION_MODES)[number];

/** A Kubernetes API, or anything that answers SubjectAccessReviews as one does. */
export interface AuthorizationWebhook {
  /** Without a path, that of the Kubernetes API is meant: /apis/authorization.k8s.io/v1/subjectaccessreviews. */
  readonly target: WebhookTarget;
  readonly version: ReviewVersion;
  /** From the question to the whole answer. Past it: nobody is allowed. */
  readonly timeoutMs: number;
  /** How long an answer is kept. kube-apiserver's --authorization-webhook-cache-(un)authorized-ttl. */
  readonly authorizedTtlMs: number;
  readonly unauthorizedTtlMs: number;
  /** Answers kept at once; the one that was not used for the longest time goes first. */
  readonly maxCachedDecisions: number;
}

export interface Authorization {
  /** Asked in order, as kube-apiserver does. Never empty, no mode twice. */
  readonly modes: readonly AuthorizationMode[];
  /** Given if and only if Webhook is among the modes. */
  readonly webhook: AuthorizationWebhook | undefined;
}

export const defaultAuthorizationModes: readonly AuthorizationMode[] = ["AlwaysAllow"];

const MINUTE = 60_000;
const TTL: Range = { min: 0, max: 24 * 60 * MINUTE };

export const WEBHOOK_NOT_CONFIGURED = "authorization-mode Webhook's authorization config is not given";

export const defaultWebhookTimes = {
  timeoutMs: 10_000,
  authorizedTtlMs: 5 * MINUTE,
  unauthorizedTtlMs: MINUTE / 2,
  maxCachedDecisions: 8_192,
} as const;

export function readAuthorization(section: Section): Authorization {
  const modes = section.choices("mode", defaultAuthorizationModes, AUTHORIZATION_MODES);
  const repeated = repeatedMode(modes);
  if (repeated !== undefined) section.problem("mode", repeated);
  const webhook = section.has("webhook") ? readWebhook(section.section("webhook")) : undefined;
  if (modes.includes("Webhook") && !section.has("webhook")) {
    section.problem("webhook", WEBHOOK_NOT_CONFIGURED);
  }
  if (section.has("webhook") && !modes.includes("Webhook")) {
    section.problem("webhook", "cannot be specified without mode Webhook");
  }
  section.finish();
  return { modes, webhook };
}

function readWebhook(section: Section): AuthorizationWebhook | undefined {
  const target = readWebhookTarget(section, "https://kubernetes.default.svc");
  const defaults = defaultWebhookTimes;
  const webhook = {
    version: section.choice("version", "v1", REVIEW_VERSIONS),
    timeoutMs: section.durationMs("timeout", defaults.timeoutMs, { min: 100, max: MINUTE }),
    authorizedTtlMs: section.durationMs("authorizedTTL", defaults.authorizedTtlMs, TTL),
    unauthorizedTtlMs: section.durationMs("unauthorizedTTL", defaults.unauthorizedTtlMs, TTL),
    maxCachedDecisions: section.count("maxCachedDecisions", defaults.maxCachedDecisions, {
      min: 1,
      max: 1_000_000,
    }),
  };
  section.finish();
  return target === undefined ? undefined : { target, ...webhook };
}

export function checkAuthorizationMode(mode: string): string | undefined {
  return notAmong(mode, AUTHORIZATION_MODES);
}

/** kube-apiserver's sentence for a list that names a mode twice. */
export function repeatedMode(modes: readonly string[]): string | undefined {
  if (new Set(modes).size === modes.length) return undefined;
  return `authorization-mode [${modes.map((mode) => JSON.stringify(mode)).join(" ")}] has mode specified more than once`;
}
