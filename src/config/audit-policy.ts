import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { notAmong, Section } from "./section.ts";
import { parseYamlDocuments } from "./yaml-documents.ts";

const LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
const STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;

/** One rule of an audit.k8s.io/v1 Policy. Empty lists match everything. */
export interface AuditPolicyRule {
  readonly level: (typeof LEVELS)[number];
  readonly users: readonly string[];
  readonly userGroups: readonly string[];
  readonly verbs: readonly string[];
  readonly resources: readonly AuditGroupResources[];
  readonly namespaces: readonly string[];
  readonly nonResourceUrls: readonly string[];
  readonly omitStages: readonly string[];
}

export interface AuditGroupResources {
  readonly group: string;
  readonly resources: readonly string[];
  readonly resourceNames: readonly string[];
}

export interface AuditPolicyDocument {
  readonly rules: readonly AuditPolicyRule[];
  readonly omitStages: readonly string[];
}

/** Reads a policy file as kube-apiserver takes it. Throws ConfigurationError with everything that is wrong with it. */
export function parseAuditPolicy(text: string, fileName: string): AuditPolicyDocument {
  const [document] = parseYamlDocuments(text, fileName);
  const problems: ConfigurationProblem[] = [];
  const context = { fileName, document: document ?? { lineOf: () => 1 }, problems };
  const value = document?.value;
  const root = new Section(context, [], value);
  const isOne = (wanted: string) => (found: string) =>
    found === wanted ? undefined : `must be ${JSON.stringify(wanted)}`;
  for (const [name, wanted] of [
    ["apiVersion", "audit.k8s.io/v1"],
    ["kind", "Policy"],
  ] as const) {
    if (root.optionalString(name, isOne(wanted)) === undefined && !root.has(name)) {
      root.problem(name, `is required and must be ${JSON.stringify(wanted)}`);
    }
  }
  const omitStages = stagesOf(root);
  root.boolean("omitManagedFields", false);
  root.has("metadata");
  const given = root.has("rules") ? (value as { rules: unknown }).rules : [];
  if (!Array.isArray(given)) root.problem("rules", "must be a list");
  const rules = (Array.isArray(given) ? given : []).map((rule: unknown, index) =>
    readRule(
      new Section(context, ["rules", index], rule),
      rule,
      (name, item, position) => new Section(context, ["rules", index, name, position], item),
    ),
  );
  if (rules.length === 0) root.problem("rules", "loaded illegal policy with 0 rules");
  root.finish();
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { rules, omitStages };
}

function readRule(
  section: Section,
  value: unknown,
  below: (name: string, item: unknown, position: number) => Section,
): AuditPolicyRule {
  const list = (name: string) => section.strings(name, [], () => undefined);
  const level = section.optionalString("level", (found) => notAmong(found, LEVELS));
  if (!section.has("level")) section.problem("level", "is required");
  const resources = section.has("resources") ? (value as { resources: unknown }).resources : [];
  if (!Array.isArray(resources)) section.problem("resources", "must be a list");
  const rule = {
    level: (level ?? "None") as AuditPolicyRule["level"],
    users: list("users"),
    userGroups: list("userGroups"),
    verbs: list("verbs"),
    resources: (Array.isArray(resources) ? resources : []).map((item: unknown, position) =>
      readResources(below("resources", item, position)),
    ),
    namespaces: list("namespaces"),
    nonResourceUrls: section.strings("nonResourceURLs", [], checkPath),
    omitStages: stagesOf(section),
  };
  section.boolean("omitManagedFields", false);
  const isAboutResources = rule.resources.length > 0 || rule.namespaces.length > 0;
  if (isAboutResources && rule.nonResourceUrls.length > 0) {
    section.problem("nonResourceURLs", "rules cannot apply to both regular resources and non-resource URLs");
  }
  section.finish();
  return rule;
}

function readResources(section: Section): AuditGroupResources {
  // The core group's name is empty, which no other string of a configuration may be.
  const given = section.entries().find(([name]) => name === "group")?.[1] ?? "";
  if (typeof given !== "string") section.problem("group", "must be a string");
  const list = (name: string) => section.strings(name, [], () => undefined);
  const resources = {
    group: String(given),
    resources: list("resources"),
    resourceNames: list("resourceNames"),
  };
  if (resources.resourceNames.length > 0 && resources.resources.length === 0) {
    section.problem("resourceNames", "using resourceNames requires at least one resource");
  }
  return resources;
}

function stagesOf(section: Section): readonly string[] {
  return section.strings("omitStages", [], (stage) => notAmong(stage, STAGES));
}

function checkPath(value: string): string | undefined {
  if (value === "*") return undefined;
  if (!value.startsWith("/")) return 'non-resource URL rules must begin with a "/" character';
  return value.slice(0, -1).includes("*")
    ? 'non-resource URL wildcards "*" must be the final character of the rule'
    : undefined;
}
