import { StatusError } from "@sluice/client/internal/api/status";
import type { PolicyRule } from "../../api/rbac-objects.ts";
import type { Authorization } from "../../config/sections/authorization.ts";
import { type Component, Started } from "../../lifecycle/component.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Logger } from "../../observability/logger.ts";
import type { UserInfo } from "../user-info.ts";
import { loggedReviews, webhookClient } from "../webhook-client.ts";
import {
  type Attributes,
  type Authorizer,
  alwaysAllow,
  alwaysDeny,
  type Decision,
  type NonResourceRule,
  type ResourceRule,
  superusers,
  type UserRules,
} from "./authorizer.ts";
import type { RbacIndex } from "./rbac/rbac-index.ts";
import { type RbacObjects, RbacSource } from "./rbac/rbac-source.ts";
import { WebhookAuthorizer } from "./webhook/webhook-authorizer.ts";

type AuthorizationMode = Authorization["modes"][number];

/**
 * Kubernetes' union: the first allow or deny decides. Otherwise no opinion, with every reason. An
 * authorizer that throws has no opinion; its StatusError is thrown if no other decides.
 */
export class AuthorizerChain implements Authorizer {
  readonly #authorizers: readonly Authorizer[];

  constructor(authorizers: readonly Authorizer[]) {
    this.#authorizers = authorizers;
  }

  async authorize(attributes: Attributes): Promise<Decision> {
    const reasons: string[] = [];
    const errors: string[] = [];
    let unable: StatusError | undefined;
    for (const authorizer of this.#authorizers) {
      const decision = await decisionOf(authorizer, attributes);
      if (decision instanceof StatusError) {
        unable ??= decision;
        continue;
      }
      if (decision.decision !== "no-opinion") return decision;
      if (decision.reason !== "") reasons.push(decision.reason);
      if (decision.error !== undefined) errors.push(decision.error);
    }
    if (unable !== undefined) throw unable;
    const error = errors.length === 0 ? {} : { error: aggregate(errors) };
    return { decision: "no-opinion", reason: reasons.join("\n"), ...error };
  }

  async rulesFor(user: UserInfo, namespace: string): Promise<UserRules> {
    const all = await Promise.all(
      this.#authorizers.map((authorizer) => authorizer.rulesFor?.(user, namespace)),
    );
    const found = all.filter((rules) => rules !== undefined);
    const errors = found.flatMap(({ evaluationError }) => evaluationError ?? []);
    return {
      resourceRules: found.flatMap(({ resourceRules }) => resourceRules),
      nonResourceRules: found.flatMap(({ nonResourceRules }) => nonResourceRules),
      incomplete: found.some(({ incomplete }) => incomplete),
      ...(errors.length > 0 && { evaluationError: aggregate(errors) }),
    };
  }
}

/** Formats errors as Kubernetes does: one alone, several as `[a, b]`, duplicates once. */
function aggregate(errors: readonly string[]): string {
  const texts = [...new Set(errors)];
  return texts.length === 1 ? texts.join("") : `[${texts.join(", ")}]`;
}

async function decisionOf(authorizer: Authorizer, attributes: Attributes): Promise<Decision | StatusError> {
  try {
    return await authorizer.authorize(attributes);
  } catch (error) {
    if (error instanceof StatusError) return error;
    // The authorizer logged the cause; the user sees only that no decision was made.
    return { decision: "no-opinion", reason: "", error: "an authorizer failed" };
  }
}

const ALL = "*";

/** Whether a rule allows the request, as in pkg/apis/rbac/v1/evaluation_helpers.go. */
export function ruleAllows(attributes: Attributes, rule: PolicyRule): boolean {
  if (!hasOrAll(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest) return urlMatches(rule.nonResourceURLs ?? [], attributes.path);
  const { resourceNames = [] } = rule;
  return (
    hasOrAll(rule.apiGroups ?? [], attributes.apiGroup) &&
    resourceMatches(rule.resources ?? [], attributes) &&
    (resourceNames.length === 0 || resourceNames.includes(attributes.name))
  );
}

function hasOrAll(values: readonly string[], wanted: string): boolean {
  return values.includes(ALL) || values.includes(wanted);
}

/**
 * Matches `pods`, `pods/exec`, `*`, and `*` with `/exec` for any resource's subresource. `pods` does
 * not cover `pods/exec`.
 */
function resourceMatches(resources: readonly string[], { resource, subresource }: Attributes): boolean {
  const wanted = subresource === "" ? resource : `${resource}/${subresource}`;
  if (hasOrAll(resources, wanted)) return true;
  return subresource !== "" && resources.includes(`*/${subresource}`);
}

/** Matches `*`, an exact path, or a prefix before a trailing `*`. */
function urlMatches(urls: readonly string[], path: string): boolean {
  return urls.some(
    (url) =>
      url === ALL || url === path || (url.endsWith("*") && path.startsWith(url.replace(/(?<!\*)\*+$/, ""))),
  );
}

/**
 * `--authorization-mode=RBAC`: allows a request if a bound rule does, otherwise has no opinion. A
 * binding without its role grants nothing; as in kube-apiserver, the refusal's reason says so.
 */
export class RbacAuthorizer implements Authorizer {
  readonly #currentIndex: () => RbacIndex;

  /** Calls `currentIndex` for every request, so that edited manifests count at once. */
  constructor(currentIndex: () => RbacIndex) {
    this.#currentIndex = currentIndex;
  }

  async authorize(attributes: Attributes): Promise<Decision> {
    const errors: string[] = [];
    const bindings = this.#currentIndex().bindingsFor(attributes.user, attributes.namespace);
    for (const { roleRules, describe } of bindings) {
      if (roleRules.error !== undefined) errors.push(roleRules.error);
      else if (roleRules.rules.some((rule) => ruleAllows(attributes, rule))) {
        return { decision: "allow", reason: `RBAC: allowed by ${describe()}` };
      }
    }
    return { decision: "no-opinion", reason: errors.length === 0 ? "" : `RBAC: ${aggregate(errors)}` };
  }

  async rulesFor(user: UserInfo, namespace: string): Promise<UserRules> {
    const resourceRules: ResourceRule[] = [];
    const nonResourceRules: NonResourceRule[] = [];
    const errors: string[] = [];
    for (const { roleRules } of this.#currentIndex().bindingsFor(user, namespace)) {
      if (roleRules.error !== undefined) errors.push(roleRules.error);
      for (const rule of roleRules.rules ?? []) {
        const { verbs, apiGroups = [], resources = [], resourceNames, nonResourceURLs = [] } = rule;
        if (resources.length > 0) {
          resourceRules.push({ verbs, apiGroups, resources, ...(resourceNames && { resourceNames }) });
        }
        if (nonResourceURLs.length > 0) nonResourceRules.push({ verbs, nonResourceURLs });
      }
    }
    const failure = errors.length === 0 ? {} : { evaluationError: aggregate(errors) };
    return { resourceRules, nonResourceRules, incomplete: false, ...failure };
  }
}

export interface BuiltAuthorizer extends Component {
  readonly authorizer: Authorizer;
  /** Releases connections and subscriptions. */
  stop(): Promise<void>;
}

/** Builds the chain of the configured modes, superusers first. */
export async function buildAuthorizer(
  { modes, webhook }: Authorization,
  objects: RbacObjects,
  logger: Logger,
  upstreams: UpstreamTlsFiles,
): Promise<BuiltAuthorizer> {
  return await Started.building(async (started) => {
    const build: Readonly<Record<AuthorizationMode, () => Authorizer | Promise<Authorizer>>> = {
      AlwaysAllow: () => alwaysAllow,
      AlwaysDeny: () => alwaysDeny,
      RBAC: () => {
        const source = started.add(new RbacSource(objects), (it) => it.stop());
        return new RbacAuthorizer(() => source.current);
      },
      Webhook: async () => {
        // The configuration's reader ensures that the mode has its section.
        if (webhook === undefined) throw new Error("mode Webhook has no configuration");
        const { target, version, timeoutMs } = webhook;
        const defaultPath = `/apis/authorization.k8s.io/${version}/subjectaccessreviews`;
        const client = started.add(
          await webhookClient(target, {
            defaultPath,
            timeoutMs,
            use: "authorizationWebhook",
            upstreams,
          }),
          (it) => it.stop(),
        );
        const reviews = loggedReviews(client.ask, {
          permission: "create subjectaccessreviews.authorization.k8s.io (authorization.mode: Webhook)",
          failed: "the authorization webhook failed",
          logger,
        });
        return new WebhookAuthorizer(reviews.ask, {
          ...webhook,
          nowMs: () => performance.now(),
          onFailure: reviews.onFailure,
        });
      },
    };
    const authorizers: Authorizer[] = [superusers];
    for (const mode of modes) authorizers.push(await build[mode]());
    return {
      authorizer: new AuthorizerChain(authorizers),
      stop: () => started.stop(),
    };
  });
}
