import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { walkedRoundRules } from "../../access/policy/other-spellings.ts";
import type { ApiObject } from "../../api/api-object.ts";
import {
  INGRESS_CLASS_ANNOTATION,
  type Ingress,
  type IngressClass,
  isRegularExpression,
} from "../../api/networking-objects.ts";
import { checkFiles } from "../../app/check-files.ts";
import { readManifestFiles } from "../../cluster/manifest-files.ts";
import { type ManifestFile, readManifests } from "../../cluster/manifests.ts";
import { CONFIGURATION_KIND } from "../../config/configuration.ts";
import { configurationWarnings, expiryWarnings } from "../../config/configuration-warnings.ts";
import { FeatureGateError, FeatureGates } from "../../config/feature-gates.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { DEFAULT_CONTROLLER_NAME } from "../../config/sections/ingress-listener.ts";
import type { PolicyRule } from "../../config/sections/policy.ts";
import { rulePathWith } from "../../ingress/path-rewrite.ts";
import { routeOptionsOf, SERVED_FOREIGN_ANNOTATIONS } from "../../ingress/route-options.ts";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/check-config.ts";
import { coloured } from "../print-text.ts";

/** The classes that this gateway serves. */
interface OwnClasses {
  readonly controllerName: string;
  readonly legacyClassName: string | undefined;
}

/** Annotations of other controllers that have no effect here. */
const FOREIGN_ANNOTATION =
  /^(?:(?:nginx|haproxy|traefik|alb|appgw|contour)\.ingress\.kubernetes\.io|ingress\.kubernetes\.io|nginx\.(?:org|com)|haproxy\.(?:org|com)|haproxy-ingress\.github\.io|konghq\.com|projectcontour\.io|ingress\.cilium\.io|ingress\.pomerium\.io)\//;
/** Class names that other controllers install. */
const FOREIGN_CLASSES: ReadonlySet<string> = new Set(
  "nginx haproxy traefik alb gce gce-internal kong contour cilium istio pomerium azure-application-gateway".split(
    " ",
  ),
);
const MAX_SHOWN_ANNOTATIONS = 5;

/**
 * Warns about Ingress settings that this gateway ignores, by the classes among the objects and
 * well-known names.
 */
function ingressWarnings(objects: readonly ApiObject[], own: OwnClasses): string[] {
  const classes = new Map(
    objects
      .filter((object): object is IngressClass & ApiObject => object.kind === "IngressClass")
      .map(({ metadata, spec }) => [metadata.name, spec?.controller]),
  );
  return objects
    .filter((object): object is Ingress & ApiObject => object.kind === "Ingress")
    .flatMap((ingress) => {
      const name = `Ingress ${ingress.metadata.namespace ?? "default"}/${ingress.metadata.name}`;
      return warningsOf(ingress, classes, own).map((warning) => `${name}: ${warning}`);
    });
}

function warningsOf(
  { metadata, spec }: Ingress,
  classes: ReadonlyMap<string, string | undefined>,
  own: OwnClasses,
): string[] {
  const { annotations = {} } = metadata;
  const warnings: string[] = [];
  const annotated = annotations[INGRESS_CLASS_ANNOTATION];
  const named = annotated ?? spec?.ingressClassName;
  if (named !== undefined && isForeign(named, annotated !== undefined, classes, own)) {
    const controller = JSON.stringify(own.controllerName);
    warnings.push(
      `class ${JSON.stringify(named)} is another controller's, so it is not served: its IngressClass would need spec.controller ${controller}`,
    );
  }
  const foreign = Object.keys(annotations).filter(
    (key) => FOREIGN_ANNOTATION.test(key) && !SERVED_FOREIGN_ANNOTATIONS.has(key),
  );
  if (foreign.length > 0) {
    const shown = foreign.slice(0, MAX_SHOWN_ANNOTATIONS).join(", ");
    const more =
      foreign.length > MAX_SHOWN_ANNOTATIONS ? ` and ${foreign.length - MAX_SHOWN_ANNOTATIONS} more` : "";
    warnings.push(`annotations of other controllers have no effect here: ${shown}${more}`);
  }
  const { options, problems } = routeOptionsOf({ metadata });
  warnings.push(...problems);
  const paths = (spec?.rules ?? []).flatMap(({ http }) => http?.paths ?? []);
  for (const { path = "", pathType } of paths) {
    const { isPattern, problem } = rulePathWith(options.rewriting, path, pathType);
    if (problem !== undefined) warnings.push(problem);
    if (!isPattern && isRegularExpression(path, pathType)) {
      warnings.push(
        `path ${JSON.stringify(path)} looks like a regular expression and is matched literally, as a prefix`,
      );
    }
  }
  return warnings;
}

function isForeign(
  name: string,
  isLegacy: boolean,
  classes: ReadonlyMap<string, string | undefined>,
  own: OwnClasses,
): boolean {
  if (classes.has(name)) return classes.get(name) !== own.controllerName;
  return !(isLegacy && name === own.legacyClassName) && FOREIGN_CLASSES.has(name);
}

/** The classes of a gateway without its own setting. */
const OWN_CLASSES: OwnClasses = { controllerName: DEFAULT_CONTROLLER_NAME, legacyClassName: undefined };

/** Prints every problem of the files with its line, in the API server's words. Exit code 0 or 2. */
export async function run({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  const gates = gatesOf(values["feature-gates"] ?? "");
  const files = [...operands, ...values.filename, ...values.config];
  if (files.length === 0) throw new UsageError("-f FILE is required", { showsUsage: true });
  let hasProblems = false;
  const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      hasProblems = true;
      process.stderr.write(`${maskControls(error.message)}\n`);
      return undefined;
    }
  };
  for (const file of files) {
    const parts = (await attempt(() => partsOf(file))) ?? [];
    for (const part of parts) {
      const described = await attempt(() => check(part, gates, values));
      if (described !== undefined) process.stdout.write(`${part.name}: ${described}\n`);
    }
  }
  return hasProblems ? 2 : 0;
}

type CheckValues = Pick<Invocation<typeof command.flags>["values"], "old" | "syntax">;

/** One thing to check: a configuration, or the manifests of a file or folder. */
interface Part {
  readonly name: string;
  readonly configuration?: string;
  readonly manifests: readonly ManifestFile[];
}

/**
 * A folder may contain configurations as well as manifests. Throws ConfigurationError for empty
 * files.
 */
async function partsOf(path: string): Promise<readonly Part[]> {
  const files = await readManifestFiles([path]);
  if (files.length === 0) throw nothingIn(path, 0, "the folder holds no *.yaml, *.yml or *.json file");
  const empty = files.filter(({ text }) => EMPTY_FILE.test(text));
  if (empty.length > 0) throw nothingIn(empty[0]?.name ?? path, 1, "the file holds no object");
  const configurations = files.filter(({ text }) => isConfiguration(text));
  const manifests = files.filter((file) => !configurations.includes(file));
  return [
    ...configurations.map(({ name }) => ({ name, configuration: name, manifests: [] })),
    ...(manifests.length > 0 ? [{ name: path, manifests }] : []),
  ];
}

/** Describes the part if it is valid. If it is a configuration, checks its manifests, too. */
async function check(part: Part, gates: FeatureGates, { old, syntax }: CheckValues): Promise<string> {
  const { configuration: path, manifests } = part;
  if (path === undefined) {
    const objects = manifestsOf(manifests, gates, await readManifestFiles(old), OWN_CLASSES);
    return `${objects.length} valid object${objects.length === 1 ? "" : "s"}`;
  }
  const configuration = await loadConfiguration(path);
  const { cluster, featureGates, namedFiles, policy } = configuration;
  if (syntax) return `a valid ${CONFIGURATION_KIND}; the files that it names were not read`;
  await checkFiles(configuration);
  const warnings = [
    ...configurationWarnings(configuration),
    ...(await expiryWarnings(namedFiles)),
    ...policyWarnings(policy.rules),
  ];
  for (const warning of warnings) warn(`${path}: ${warning}`);
  const own = configuration.listeners.ingress ?? OWN_CLASSES;
  const objects = manifestsOf(await readManifestFiles(cluster.manifests), featureGates, [], own);
  return `a valid ${CONFIGURATION_KIND}, with ${objects.length} objects in its manifests`;
}

/** Warns about rules whose commands match less, or more, than they seem to. */
function policyWarnings(rules: readonly PolicyRule[]): readonly string[] {
  const round = walkedRoundRules(rules).map(({ index, rule, command, passing }) => {
    const others = passing.slice(0, 3).map((other) => JSON.stringify(other));
    return `policy.rules[${index}] (${rule.name}) refuses ${JSON.stringify(command)}, and ${others.join(", ")} is allowed: allow what is needed and deny the rest (docs/policy.md)`;
  });
  const byName = [...rules.entries()].flatMap(([index, { name, action, match }]) =>
    action === "allow" && match.command.some((pattern) => pattern.match === "programs")
      ? [
          `policy.rules[${index}] (${name}) allows programs by their base name, which any file of that name has: use prefix`,
        ]
      : [],
  );
  return [...round, ...byName];
}

/** True for a text with only blank lines, comments and document marks. */
const EMPTY_FILE = /^(?:[ \t]*(?:#.*)?(?:\r?\n|$)|(?:---|\.\.\.)[ \t]*(?:#.*)?(?:\r?\n|$))*$/;

function nothingIn(source: string, line: number, message: string): ConfigurationError {
  return new ConfigurationError([{ source, line, column: 0, path: "", message }]);
}

function manifestsOf(
  files: readonly ManifestFile[],
  gates: FeatureGates,
  old: readonly ManifestFile[],
  own: OwnClasses,
) {
  const { objects, warnings, passedOver, unjudged } = readManifests(files, gates, old);
  for (const line of passedOver) process.stderr.write(`${maskControls(line)}\n`);
  for (const warning of [...warnings, ...ingressWarnings(objects, own)]) warn(warning);
  for (const line of unjudged) process.stderr.write(`${maskControls(line)}\n`);
  return objects;
}

function warn(text: string): void {
  process.stderr.write(coloured(`Warning: ${maskControls(text)}\n`, process.stderr));
}

function gatesOf(flag: string): FeatureGates {
  try {
    return FeatureGates.parse(flag);
  } catch (error) {
    if (!(error instanceof FeatureGateError)) throw error;
    throw new UsageError(error.message);
  }
}

/** Judges by the first level alone: a ConfigMap may contain a configuration as text. */
function isConfiguration(text: string): boolean {
  if (!/^\s*\{/.test(text)) return new RegExp(`^kind:\\s*["']?${CONFIGURATION_KIND}\\b`, "m").test(text);
  try {
    return (JSON.parse(text) as { kind?: unknown }).kind === CONFIGURATION_KIND;
  } catch {
    return new RegExp(`\\bkind["']?\\s*:\\s*["']?${CONFIGURATION_KIND}\\b`).test(text);
  }
}
