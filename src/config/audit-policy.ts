import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { checked, type Field, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, constant, declare } from "@sluice/client/internal/config/fields";
import { notAmong, Section } from "@sluice/client/internal/config/section";
import { EMPTY_DOCUMENT, parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import { sections, strings } from "./section-fields.ts";

const STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;

const omitStages = strings("Stages without events.", { check: (stage) => notAmong(stage, STAGES) });
const omitManagedFields = boolean("Not used: events hold no objects.");

const groupResources = table({
  // The core group's name is empty; other strings may not be.
  group: declare("API group of the resources.", {
    default: "",
    type: "string",
    schema: { type: "string" },
    read: (parent, name) =>
      parent.parsed(name, (value) => {
        if (typeof value === "string") return value;
        throw new RangeError("must be a string");
      }),
  }) as Field<string, "*">,
  resources: strings("Resources and `resource/subresource`."),
  resourceNames: strings("Names of objects."),
});

const rule = table({
  level: choice("What events hold.", ["None", "Metadata", "Request", "RequestResponse"], {
    required: "is required",
  }),
  users: strings("Names of users."),
  userGroups: strings("Groups; the user must be in one of them."),
  verbs: strings("Verbs of requests."),
  resources: sections(
    "Kinds of objects.",
    checked(groupResources, ({ resources, resourceNames }, section) => {
      if (resourceNames.length > 0 && resources.length === 0) {
        section.problem("resourceNames", "using resourceNames requires at least one resource");
      }
    }),
  ),
  namespaces: strings("Namespaces of objects."),
  nonResourceURLs: strings("Paths of requests without objects.", { as: "nonResourceUrls", check: checkPath }),
  omitStages,
  omitManagedFields,
});

const policy = table({
  apiVersion: constant("audit.k8s.io/v1"),
  kind: constant("Policy"),
  metadata: declare("Not used.", { type: "map", schema: {}, read: (parent, name) => parent.has(name) }),
  omitStages,
  omitManagedFields,
  rules: sections("The first rule that matches decides.", checked(rule, checkScope)),
});

/** One rule of an audit.k8s.io/v1 Policy. Empty lists match everything. */
export type AuditPolicyRule = Omit<ValueOf<typeof rule>, "omitManagedFields">;
export interface AuditPolicyDocument {
  readonly rules: readonly AuditPolicyRule[];
  readonly omitStages: readonly string[];
}

/**
 * Reads a policy file as kube-apiserver does. Throws ConfigurationError with all of its problems.
 */
export function parseAuditPolicy(text: string, fileName: string): AuditPolicyDocument {
  const [document = EMPTY_DOCUMENT] = parseYamlDocuments(text, fileName);
  const problems: ConfigurationProblem[] = [];
  const root = new Section({ fileName, document, problems }, [], document.value);
  const { rules, omitStages: stages } = policy.read(root);
  if (rules.length === 0) root.problem("rules", "loaded illegal policy with 0 rules");
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { rules, omitStages: stages };
}

function checkScope(values: AuditPolicyRule, section: Section): void {
  const isAboutResources = values.resources.length > 0 || values.namespaces.length > 0;
  if (isAboutResources && values.nonResourceUrls.length > 0) {
    section.problem("nonResourceURLs", "rules cannot apply to both regular resources and non-resource URLs");
  }
}

function checkPath(value: string): string | undefined {
  if (value === "*") return undefined;
  if (!value.startsWith("/")) return 'non-resource URL rules must begin with a "/" character';
  return value.slice(0, -1).includes("*")
    ? 'non-resource URL wildcards "*" must be the final character of the rule'
    : undefined;
}
