import { isRbacObject, type RbacObject } from "../../../api/rbac-objects.ts";
import type { StatusError } from "../../../api/status.ts";
import { bootstrapPolicy } from "./bootstrap-policy.ts";
import { RbacIndex } from "./rbac-index.ts";

const RBAC_KINDS = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"] as const;

/** The source of RBAC objects, with notifications of changes. */
export interface RbacObjects {
  /** In order of namespace and name. */
  listRbacObjects(): readonly RbacObject[];
  subscribe(listener: (change: { readonly object: { readonly kind: string } }) => void): () => void;
  /** Whether they still count. Absent: always. */
  readonly freshnessOf?:
    | ((kinds: readonly RbacObject["kind"][]) => { readonly problem: StatusError | undefined })
    | undefined;
}

/** The index of the current objects, rebuilt lazily after a change. */
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

  /** Throws StatusError 503 where the objects are too old to count. */
  get current(): RbacIndex {
    const problem = this.#objects.freshnessOf?.(RBAC_KINDS).problem;
    if (problem !== undefined) throw problem;
    this.#index ??= new RbacIndex(withBootstrapPolicy(this.#objects.listRbacObjects()));
    return this.#index;
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
