import type { Subject } from "../../../api/rbac-objects.ts";
import type { UserInfo } from "../../user-info.ts";

/** A service account's user name. */
function serviceAccountUserName(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}

/**
 * The identity that a subject is indexed by: `user/NAME` or `group/NAME`. Undefined for a service
 * account without a namespace. `bindingNamespace` is empty for a ClusterRoleBinding.
 */
export function identityOfSubject(subject: Subject, bindingNamespace: string): string | undefined {
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
export function identitiesOf(user: UserInfo): string[] {
  return [`user/${user.name}`, ...user.groups.map((group) => `group/${group}`)];
}
