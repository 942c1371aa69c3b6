import { isRbacObject, type RbacObject } from "../../../api/rbac-objects.ts";
import { bootstrapPolicy } from "./bootstrap-policy.ts";
import { RbacIndex } from "./rbac-index.ts";

/** The source of RBAC objects, with notifications of changes. */
export interface RbacObjects {
  /** In order of namespace and name. */
  listRbacObjects(): readonly RbacObject[];
  subscribe(listener: (change: { readonly object: { readonly kind: string } }) => void): () => void;
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

  get current(): RbacIndex {
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
