import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { parseConfiguration } from "../../src/config/configuration.ts";
import { requiredRules } from "../../src/kubernetes/required-rules.ts";
import { programOf } from "./real-parts.ts";

export const CHART = fileURLToPath(new URL("../../deploy/chart", import.meta.url));

export interface Rendered {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly rules?: readonly PolicyRule[];
  readonly roleRef?: { readonly kind: string; readonly name: string };
  readonly spec?: {
    readonly selector: { readonly matchLabels: object };
    readonly template: { readonly spec: PodSpec };
    readonly egress?: readonly unknown[];
  };
}

interface PolicyRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** Each verb with its resource or path: `get /pods`. */
function grantsOf({ apiGroups = [], resources = [], nonResourceURLs = [], verbs }: PolicyRule): string[] {
  const objects = apiGroups.flatMap((group) => resources.map((resource) => `${group}/${resource}`));
  return verbs.flatMap((verb) => [...objects, ...nonResourceURLs].map((object) => `${verb} ${object}`));
}

interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: object;
  readonly volumes: readonly { readonly name: string }[];
  readonly containers: readonly {
    readonly args: readonly string[];
    readonly ports?: readonly object[];
    readonly env?: readonly object[];
    readonly volumeMounts: readonly object[];
    readonly securityContext: object;
    readonly resources: { readonly limits: object };
    readonly lifecycle: { readonly preStop: { readonly sleep: { readonly seconds: number } } };
  }[];
}

export function helm(...arguments_: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(programOf("helm"), arguments_, { encoding: "utf8" });
  return { status, stdout, stderr };
}

/** Renders the chart as the release `s` in the namespace `sluice`. */
export function renderChart(...options: readonly string[]): readonly Rendered[] {
  const { status, stdout, stderr } = helm("template", "s", CHART, "--namespace", "sluice", ...options);
  if (status !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout).flatMap((document) => (document.toJSON() as Rendered | null) ?? []);
}

/** The configuration of the only component. */
export function configurationOf(objects: readonly Rendered[]): string {
  return objects.find(({ data }) => data?.["config.yaml"])?.data?.["config.yaml"] ?? "";
}

/**
 * The rules that bound roles grant, and the rules that the only component's configuration needs.
 */
export function rightsOf(objects: readonly Rendered[]) {
  const bound = objects.flatMap(({ roleRef }) => (roleRef ? `${roleRef.kind}/${roleRef.name}` : []));
  const roles = objects.filter(({ kind, metadata }) => bound.includes(`${kind}/${metadata.name}`));
  const held = new Set(roles.flatMap(({ rules = [] }) => rules.flatMap(grantsOf)));
  const needed = requiredRules(parseConfiguration(configurationOf(objects), "config.yaml")).flatMap(
    ({ apiGroup, nonResourceURLs, ...rest }) =>
      grantsOf(
        nonResourceURLs ? { ...rest, resources: [], nonResourceURLs } : { ...rest, apiGroups: [apiGroup] },
      ),
  );
  const isHeld = (grant: string) => held.has(grant) || held.has(grant.replace(/ \S*$/, " */*"));
  return { held, needed, missing: needed.filter((grant) => !isHeld(grant)) };
}
