import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  RbacObject,
  Role,
  RoleBinding,
  Subject,
} from "../../../api/rbac-objects.ts";
import type { UserInfo } from "../../user-info.ts";
import { identitiesOf, identityOfSubject } from "./subjects.ts";

/** What a role gives, or why it gives nothing. */
export type RoleRules =
  | { readonly rules: readonly PolicyRule[]; readonly error?: undefined }
  | { readonly rules?: undefined; readonly error: string };

/** A binding that applies to a user, and its name for a reason, which few requests need. */
export interface AppliedBinding {
  readonly roleRules: RoleRules;
  describe(): string;
}

interface IndexedBinding {
  readonly order: number;
  readonly binding: ClusterRoleBinding | RoleBinding;
  readonly subjectOrder: number;
  readonly subject: Subject;
}

/** `all`: those that an aggregated role may be made of. */
type RulesOfClusterRole = (role: ClusterRole, all: readonly ClusterRole[]) => readonly PolicyRule[];

type BindingsOfIdentity = Map<string, IndexedBinding[]>;

/**
 * One state of all RBAC objects, indexed by subject, so that a request costs only its own user's and groups' bindings. Rebuilt when
 * objects change; roles are resolved at first use.
 */
export class RbacIndex {
  readonly #clusterRoles = new Map<string, ClusterRole>();
  readonly #clusterRoleList: readonly ClusterRole[];
  readonly #roles = new Map<string, Role>();
  readonly #clusterBindings: BindingsOfIdentity = new Map();
  readonly #bindingsOfNamespace = new Map<string, BindingsOfIdentity>();
  readonly #resolved = new Map<string, RoleRules>();
  readonly #rulesOfClusterRole: RulesOfClusterRole;

  /** Objects are looked at in the order given; equal names must not stand twice. */
  constructor(objects: Iterable<RbacObject>, rulesOfClusterRole: RulesOfClusterRole) {
    this.#rulesOfClusterRole = rulesOfClusterRole;
    let order = 0;
    for (const object of objects) {
      order += 1;
      switch (object.kind) {
        case "ClusterRole":
          this.#clusterRoles.set(object.metadata.name, object);
          break;
        case "Role":
          this.#roles.set(`${object.metadata.namespace ?? ""}/${object.metadata.name}`, object);
          break;
        case "ClusterRoleBinding":
          addBinding(this.#clusterBindings, object, "", order);
          break;
        case "RoleBinding": {
          const namespace = object.metadata.namespace ?? "";
          const bindings = this.#bindingsOfNamespace.get(namespace) ?? new Map();
          this.#bindingsOfNamespace.set(namespace, bindings);
          addBinding(bindings, object, namespace, order);
        }
      }
    }
    const byName = (a: ClusterRole, b: ClusterRole) => (a.metadata.name < b.metadata.name ? -1 : 1);
    this.#clusterRoleList = [...this.#clusterRoles.values()].sort(byName);
  }

  /** Kubernetes' order: ClusterRoleBindings first, then RoleBindings of the namespace, if there is one. */
  *bindingsFor(user: UserInfo, namespace: string): Generator<AppliedBinding> {
    const identities = identitiesOf(user);
    for (const found of applied(this.#clusterBindings, identities)) yield this.#describe(found, "");
    const bindings = namespace === "" ? undefined : this.#bindingsOfNamespace.get(namespace);
    if (bindings === undefined) return;
    for (const found of applied(bindings, identities)) yield this.#describe(found, namespace);
  }

  #describe({ binding, subject }: IndexedBinding, namespace: string): AppliedBinding {
    const { kind, metadata, roleRef } = binding;
    return {
      roleRules: this.#rulesOf(roleRef.kind, roleRef.name, namespace),
      describe: () => {
        const name = kind === "RoleBinding" ? `${metadata.name}/${namespace}` : metadata.name;
        return `${kind} "${name}" of ${roleRef.kind} "${roleRef.name}" to ${subjectText(subject, namespace)}`;
      },
    };
  }

  #rulesOf(kind: string, name: string, namespace: string): RoleRules {
    const key = kind === "Role" ? `Role/${namespace}/${name}` : `${kind}/${name}`;
    const known = this.#resolved.get(key);
    if (known !== undefined) return known;
    const rules = this.#resolve(kind, name, namespace);
    this.#resolved.set(key, rules);
    return rules;
  }

  #resolve(kind: string, name: string, namespace: string): RoleRules {
    const missing = `${kind.toLowerCase()}.rbac.authorization.k8s.io ${JSON.stringify(name)} not found`;
    if (kind === "Role") {
      const role = this.#roles.get(`${namespace}/${name}`);
      return role === undefined ? { error: missing } : { rules: role.rules ?? [] };
    }
    const role = this.#clusterRoles.get(name);
    return role === undefined
      ? { error: missing }
      : { rules: this.#rulesOfClusterRole(role, this.#clusterRoleList) };
  }
}

function addBinding(
  bindings: BindingsOfIdentity,
  binding: ClusterRoleBinding | RoleBinding,
  namespace: string,
  order: number,
): void {
  binding.subjects?.forEach((subject, subjectOrder) => {
    const identity = identityOfSubject(subject, namespace);
    if (identity === undefined) return;
    const list = bindings.get(identity) ?? [];
    bindings.set(identity, list);
    list.push({ order, binding, subjectOrder, subject });
  });
}

/** In the order of the objects, each binding once and by the first of its subjects that the user is. */
function applied(bindings: BindingsOfIdentity, identities: readonly string[]): IndexedBinding[] {
  const found = identities.flatMap((identity) => bindings.get(identity) ?? []);
  found.sort((a, b) => a.order - b.order || a.subjectOrder - b.subjectOrder);
  return found.filter((entry, index) => entry.order !== found[index - 1]?.order);
}

function subjectText({ kind, name, namespace }: Subject, bindingNamespace: string): string {
  const shown = kind === "ServiceAccount" ? `${name}/${namespace || bindingNamespace}` : name;
  return `${kind} ${JSON.stringify(shown)}`;
}
