import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { choice, implied } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import {
  REVIEW_VERSIONS,
  reviewTargetFields,
  withTarget,
} from "@sluice/client/internal/config/sections/webhook-target";
import { count, duration } from "../number-fields.ts";
import { choices, optionalSection, section } from "../section-fields.ts";
import { type Authentication, identifiesCallers } from "./authentication.ts";
import { LONGEST_WAIT } from "./timeouts.ts";

const CONFIG_FILE_FLAG = "authorization-webhook-config-file";
const TTL = { from: "0s", to: "24h" } as const;

const webhook = table(
  {
    ...reviewTargetFields(CONFIG_FILE_FLAG),
    version: choice("Version of the SubjectAccessReviews.", REVIEW_VERSIONS, {
      default: "v1",
      flag: "authorization-webhook-version",
      impliedBy: [implied(CONFIG_FILE_FLAG, "v1beta1")],
    }),
    timeout: duration("One review, from the request to the complete response. Past it: 403.", {
      default: "10s",
      from: "100ms",
      to: "1m",
    }),
    authorizedTTL: duration("How long a decision to allow is cached.", {
      as: "authorizedTtlMs",
      default: "5m",
      ...TTL,
      flag: "authorization-webhook-cache-authorized-ttl",
    }),
    unauthorizedTTL: duration("How long a decision to deny is cached.", {
      as: "unauthorizedTtlMs",
      default: "30s",
      ...TTL,
      flag: "authorization-webhook-cache-unauthorized-ttl",
    }),
    maxCachedDecisions: count(
      "Cached decisions. Past it the least recently used one is dropped: the user's own if that user has a quarter.",
      {
        default: 8_192,
        from: 1,
        to: 1_000_000,
      },
    ),
  },
  {
    keyField: "kubeconfigFile",
    orphanFlag: () => `needs --${CONFIG_FILE_FLAG} too`,
  },
);

const fields = table({
  mode: choices(
    "Authorizers, tried in this order. RBAC reads the cluster's Roles and bindings. Required if callers are authenticated.",
    ["AlwaysAllow", "AlwaysDeny", "RBAC", "Webhook"],
    { as: "modes", default: ["AlwaysAllow"], flag: "authorization-mode" },
  ),
  webhook: optionalSection(
    "The server that answers SubjectAccessReviews, for the mode Webhook.",
    withTarget(webhook, "https://kubernetes.default.svc"),
  ),
});

export const authorization = checked(fields, checkModes);

const portForward = table({
  connections: choice(
    "`shared`: one connection to the node, as in Kubernetes. `separate`: one for each forwarded connection, 64 of a forward at most, so that a connection that stalls or fails does not affect the others; kubectl gets no error text, because it would exit.",
    ["shared", "separate"],
    { default: "shared" },
  ),
});

/** How long a running session keeps its user's rights, and what is kept of the session. */
export const sessionAuthorization = table({
  reauthorizeInterval: duration(
    "How often each running session is authorized again; a refusal ends it, an authorizer that cannot decide does not. `0s`: never.",
    { default: "30s", from: "0s", to: LONGEST_WAIT },
  ),
  credentialExpiry: choice(
    "Whether a session ends when its credentials expire (of its start or last resumption): client certificates, OIDC tokens, JWTs of TokenReviews.",
    ["end", "ignore"],
    { default: "end" },
  ),
  currentScreen: choice(
    "`keep`: the latest 64 KiB of each terminal are kept in memory, so that viewers and joiners first see its screen. `none`: nothing is kept.",
    ["keep", "none"],
    { default: "keep" },
  ),
  portForward: section("How port-forwards are carried.", portForward),
});

export type Authorization = ValueOf<typeof fields>;

/** The messages are kube-apiserver's. */
function checkModes({ modes }: Authorization, section: Section): void {
  if (new Set(modes).size !== modes.length) {
    const list = modes.map((mode) => JSON.stringify(mode)).join(" ");
    section.problem("mode", `authorization-mode [${list}] has mode specified more than once`);
  }
  const isFlag = section.flagOf("mode") !== undefined;
  if (modes.includes("Webhook") && !section.has("webhook")) {
    const message = "authorization-mode Webhook's authorization config is not given";
    section.problem(isFlag ? "mode" : "webhook", message);
  }
  // Modes set by a flag may leave the file's webhook unused.
  const isUnused = section.has("webhook") && !modes.includes("Webhook");
  if (isUnused && (!isFlag || section.flagWithin("webhook") !== undefined)) {
    section.problem("webhook", "cannot be specified without mode Webhook");
  }
}

const MODE_REQUIRED =
  "is required if callers are authenticated: [RBAC] or [Webhook]; [AlwaysAllow] lets each of them do everything";

interface AuthenticatedSections {
  readonly authentication: Authentication;
  readonly listeners: {
    readonly kubelet?:
      | { readonly authentication?: Authentication | undefined; readonly authorization?: object | undefined }
      | undefined;
  };
}

/**
 * Authorization has no default: a file with authenticators must state it, for each listener with
 * its own authenticators.
 */
export function requireAuthorization(
  { authentication, listeners }: AuthenticatedSections,
  root: Section,
): void {
  const { kubelet } = listeners;
  const ofKubelet = kubelet?.authentication ?? authentication;
  const usesShared =
    knowsCallers(authentication) || (kubelet && !kubelet.authorization && knowsCallers(ofKubelet));
  const shared = root.section("authorization");
  if (usesShared && !shared.has("mode")) shared.problem("mode", MODE_REQUIRED);
  if (!kubelet?.authorization || !knowsCallers(ofKubelet)) return;
  const own = root.section("listeners").section("kubelet").section("authorization");
  if (!own.has("mode")) own.problem("mode", MODE_REQUIRED);
}

/** Whether a request can have a user at all; `system:anonymous` counts. */
function knowsCallers(authentication: Authentication): boolean {
  return authentication.anonymous.enabled || identifiesCallers(authentication);
}

export type SessionAuthorization = ValueOf<typeof sessionAuthorization>;
