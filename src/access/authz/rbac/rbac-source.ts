import type { StatusError } from "@sluice/client/internal/api/status";
import { matchesSelector } from "../../../api/label-match.ts";
import type { ClusterRole, PolicyRule, RbacObject } from "../../../api/rbac-objects.ts";
import { bootstrapPolicy } from "./bootstrap-policy.ts";
import { RbacIndex } from "./rbac-index.ts";

const RBAC_KINDS = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"] as const;

/** A source of RBAC objects with change notifications. */
export interface RbacObjects {
  /** In order of namespace and name. */
  listRbacObjects(): readonly RbacObject[];
  subscribe(listener: (change: { readonly object: { readonly kind: string } }) => void): () => void;
  /** Only for a live source: whether the objects are recent enough. */
  readonly freshnessOf?:
    | ((kinds: readonly RbacObject["kind"][]) => { readonly problem: StatusError | undefined })
    | undefined;
}

/**
 * The current objects' index, rebuilt at the first use after a change. Adds built-in roles and
 * aggregation to manifests, but not to a live source.
 */
export class RbacSource {
  readonly #objects: RbacObjects;
  readonly #unsubscribe: () => void;
  #index: RbacIndex | undefined;

  constructor(objects: RbacObjects) {
    this.#objects = objects;
    this.#unsubscribe = objects.subscribe(({ object }) => {
      if (isRbacObject(object)) this.#index = undefined;
    });
  }

  /** Throws StatusError 503 if the objects are too old. */
  get current(): RbacIndex {
    const problem = this.#objects.freshnessOf?.(RBAC_KINDS).problem;
    if (problem !== undefined) throw problem;
    this.#index ??= this.#indexOf(this.#objects.listRbacObjects());
    return this.#index;
  }

  /** A cluster has its own built-in and aggregated roles, unless an administrator removed them. */
  #indexOf(objects: readonly RbacObject[]): RbacIndex {
    const isLive = this.#objects.freshnessOf !== undefined;
    return isLive
      ? new RbacIndex(objects, ({ rules }) => rules ?? [])
      : new RbacIndex(withBootstrapPolicy(objects), rulesOfClusterRole);
  }

  stop(): void {
    this.#unsubscribe();
  }
}

function withBootstrapPolicy(objects: readonly RbacObject[]): RbacObject[] {
  const keyOf = ({ kind, metadata }: RbacObject) => `${kind}/${metadata.name}`;
  const given = new Set(objects.map(keyOf));
  return [...bootstrapPolicy.filter((object) => !given.has(keyOf(object))), ...objects];
}

/**
 * A ClusterRole's own rules, or those that its aggregationRule selects, in name order as in
 * kube-controller-manager. In a cycle each role has the rules of all.
 */
export function rulesOfClusterRole(role: ClusterRole, all: readonly ClusterRole[]): readonly PolicyRule[] {
  if (role.aggregationRule === undefined) return role.rules ?? [];
  const rules: PolicyRule[] = [];
  const known = new Set<string>();
  const add = (rule: PolicyRule): void => {
    const key = JSON.stringify(rule);
    if (!known.has(key)) rules.push(rule);
    known.add(key);
  };
  const seen = new Set([role.metadata.name]);
  const visit = ({ aggregationRule }: ClusterRole): void => {
    const selectors = aggregationRule?.clusterRoleSelectors ?? [];
    for (const selector of selectors) {
      for (const other of all) {
        const { name, labels = {} } = other.metadata;
        if (seen.has(name) || !matchesSelector(selector, labels)) continue;
        seen.add(name);
        if (other.aggregationRule === undefined) other.rules?.forEach(add);
        else visit(other);
      }
    }
  };
  visit(role);
  return rules;
}

function isRbacObject(object: { readonly kind: string }): object is RbacObject {
  return /^(?:Cluster)?Role(?:Binding)?$/.test(object.kind);
}
