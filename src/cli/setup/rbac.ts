import { loadConfiguration } from "../../config/load-configuration.ts";
import { type RequiredRule, requiredRules } from "../../kubernetes/required-rules.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/rbac.ts";

/** A name that YAML reads without quotes. */
const PLAIN_NAME = /^[A-Za-z][\w.:@-]*$/;

/** Prints the role that a configuration's gateway needs, and its binding. */
export async function run({ values }: Invocation<typeof command.flags>): Promise<number> {
  const { config, name, user } = values;
  const [namespace = "", account = "", ...more] = values["service-account"].split("/");
  for (const given of [name, ...(user === undefined ? [namespace, account] : [user])]) {
    if (!PLAIN_NAME.test(given)) throw new UsageError(`${JSON.stringify(given)} is not a name`);
  }
  if (more.length > 0) throw new UsageError("--service-account must be NAMESPACE/NAME");
  const rules = requiredRules(await loadConfiguration(config));
  if (rules.length === 0) {
    process.stderr.write("No permissions are needed: the configuration uses no API server.\n");
    return 0;
  }
  const subject =
    user === undefined
      ? `kind: ServiceAccount\n    name: ${account}\n    namespace: ${namespace}`
      : `kind: User\n    apiGroup: rbac.authorization.k8s.io\n    name: ${user}`;
  process.stdout.write(manifestText(name, rules, subject));
  return 0;
}

function manifestText(name: string, rules: readonly RequiredRule[], subject: string): string {
  return `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ${name}
rules:
${rules.map(ruleText).join("")}---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: ${name}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: ${name}
subjects:
  - ${subject}
`;
}

function ruleText(rule: RequiredRule): string {
  const { apiGroup, resources, resourceNames, nonResourceURLs, verbs, neededBy } = rule;
  const quoted = (item: string): string => (/^[\w-]/.test(item) ? item : `"${item}"`);
  const list = (items: readonly string[]): string => `[${items.map(quoted).join(", ")}]`;
  const what =
    nonResourceURLs === undefined
      ? `apiGroups: ${list([apiGroup])}\n    resources: ${list(resources)}`
      : `nonResourceURLs: ${list(nonResourceURLs)}`;
  const names = resourceNames === undefined ? "" : `    resourceNames: ${list(resourceNames)}\n`;
  return `  # ${neededBy}\n  - ${what}\n${names}    verbs: ${list(verbs)}\n`;
}
