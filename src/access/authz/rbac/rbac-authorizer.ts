import type { UserInfo } from "../../user-info.ts";
import type {
  Attributes,
  Authorizer,
  Decision,
  NonResourceRule,
  ResourceRule,
  UserRules,
} from "../authorizer.ts";
import { aggregate } from "../authorizer-chain.ts";
import type { RbacIndex } from "./rbac-index.ts";
import { ruleAllows } from "./rule-matching.ts";

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
