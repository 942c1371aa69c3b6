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

/** A role's rules, or why it has none. */
type RoleRules =
  | { readonly rules: readonly PolicyRule[]; readonly error?: undefined }
  | { readonly rules?: undefined; readonly error: string };

/** A binding for a user, and its name for the reason, which few requests need. */
interface AppliedBinding {
  readonly roleRules: RoleRules;
  describe(): string;
}

interface IndexedBinding {
  readonly order: number;
  readonly binding: ClusterRoleBinding | RoleBinding;
  readonly subjectOrder: number;
  readonly subject: Subject;
}

/** `all`: the ClusterRoles from which an aggregated role selects. */
type RulesOfClusterRole = (role: ClusterRole, all: readonly ClusterRole[]) => readonly PolicyRule[];

type BindingsOfIdentity = Map<string, IndexedBinding[]>;

/**
 * Indexes one state of all RBAC objects by subject, so that a request reads only the bindings of
 * its user and groups. Rebuilt when objects change; resolves roles at first use.
 */
export class RbacIndex {
  readonly #clusterRoles = new Map<string, ClusterRole>();
  readonly #clusterRoleList: readonly ClusterRole[];
  readonly #roles = new Map<string, Role>();
  readonly #clusterBindings: BindingsOfIdentity = new Map();
  readonly #bindingsOfNamespace = new Map<string, BindingsOfIdentity>();
  readonly #resolved = new Map<string, RoleRules>();
  readonly #rulesOfClusterRole: RulesOfClusterRole;

  /** Keeps the objects' order. Names must be unique. */
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

  /**
   * Kubernetes' order: ClusterRoleBindings first, then the namespace's RoleBindings, if there is a
   * namespace.
   */
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

/** The bindings in the objects' order, each once, by the first of its subjects that matches. */
function applied(bindings: BindingsOfIdentity, identities: readonly string[]): IndexedBinding[] {
  const found = identities.flatMap((identity) => bindings.get(identity) ?? []);
  found.sort((a, b) => a.order - b.order || a.subjectOrder - b.subjectOrder);
  return found.filter((entry, index) => entry.order !== found[index - 1]?.order);
}

function subjectText({ kind, name, namespace }: Subject, bindingNamespace: string): string {
  const shown = kind === "ServiceAccount" ? `${name}/${namespace || bindingNamespace}` : name;
  return `${kind} ${JSON.stringify(shown)}`;
}

/** A service account's user name. */
function serviceAccountUserName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/**
 * The identity that a subject is indexed by: `user/NAME` or `group/NAME`. Undefined for a service
 * account without a namespace. `bindingNamespace` is empty for a ClusterRoleBinding.
 */
function identityOfSubject(subject: Subject, bindingNamespace: string): string | undefined {
  switch (subject.kind) {
    case "User":
      return `user/${subject.name}`;
    case "Group":
      return `group/${subject.name}`;
    case "ServiceAccount": {
      const namespace = subject.namespace || bindingNamespace;
      if (namespace === "") return undefined;
      return `user/${serviceAccountUserName(namespace, subject.name)}`;
    }
    default:
      return undefined;
  }
}

/** Every identity of the user that a binding may name. */
function identitiesOf(user: UserInfo): string[] {
  return [`user/${user.name}`, ...user.groups.map((group) => `group/${group}`)];
}
