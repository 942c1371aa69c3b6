import type { ApiObject } from "../api/api-object.ts";
import { isClusterObject, type KubernetesObject } from "../api/objects.ts";
import { readObject } from "../api/validation/read-object.ts";
import { ConfigurationError, type ConfigurationProblem } from "../config/configuration-error.ts";
import { FeatureGates } from "../config/feature-gates.ts";
import { type FieldPath, parseYamlDocuments, type YamlDocument } from "../config/yaml-documents.ts";
import { impliedNamespaces, withDefaults, withIngressClasses } from "./defaulting.ts";
import { keyOf } from "./object-key.ts";

export interface ManifestFile {
  readonly name: string;
  readonly text: string;
}

export interface Manifests {
  /** Of every kind that is known, each valid. */
  readonly objects: readonly ApiObject[];
  /** `file:line: text`, as an API server would have sent in Warning headers. */
  readonly warnings: readonly string[];
}

/** An object and where it stands, for what can only be judged with all files at hand. */
interface FoundObject {
  readonly object: ApiObject;
  readonly warnings: readonly string[];
  readonly fileName: string;
  readonly line: number;
}

/**
 * Reads manifests (YAML or JSON, many documents to a file, Lists too) as an API server with these gates would. Throws
 * ConfigurationError with everything that is wrong in all files, each with its line and the API server's own message.
 */
export function readManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates = FeatureGates.defaults,
): Manifests {
  const problems: ConfigurationProblem[] = [];
  const found = files.flatMap((file) => readFile(file, gates, problems));
  problems.push(...duplicateProblems(found));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const warnings = found.flatMap(({ fileName, line, warnings }) =>
    warnings.map((warning) => `${fileName}:${line}: ${warning}`),
  );
  return { objects: found.map(({ object }) => object), warnings };
}

/** The objects of a cluster in the files, defaulted; kinds that no cluster in memory holds are checked with them. Throws as `readManifests`. */
export function parseManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates = FeatureGates.defaults,
): KubernetesObject[] {
  const given = readManifests(files, gates).objects.filter(isClusterObject);
  const objects = withIngressClasses(given).map(withDefaults);
  return [...objects, ...impliedNamespaces(objects)];
}

function readFile(file: ManifestFile, gates: FeatureGates, problems: ConfigurationProblem[]): FoundObject[] {
  try {
    return parseYamlDocuments(file.text, file.name).flatMap((document) =>
      readDocument(document, file.name, gates, problems),
    );
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
    return [];
  }
}

function readDocument(
  document: YamlDocument,
  fileName: string,
  gates: FeatureGates,
  problems: ConfigurationProblem[],
): FoundObject[] {
  return itemsOf(document.value).flatMap(({ value, path }) => {
    const reading = readObject(value, gates);
    const lineOf = (field: FieldPath) => document.lineOf([...path, ...field]);
    if (reading.isValid) {
      const { object, warnings } = reading;
      return [{ object, warnings, fileName, line: lineOf([]) }];
    }
    for (const problem of reading.problems) {
      const line = lineOf(problem.path);
      // The sentence names the field itself, as the API server's does.
      problems.push({ source: fileName, line, column: 0, path: "", message: problem.message });
    }
    return [];
  });
}

/** What `kubectl get -o yaml` writes for several objects is one List; lists do not nest. */
function itemsOf(value: unknown): { value: unknown; path: FieldPath }[] {
  const { apiVersion, kind, items } = (value ?? {}) as Record<string, unknown>;
  if (apiVersion === "v1" && kind === "List" && (Array.isArray(items) || items === undefined)) {
    return (items ?? []).map((item, index) => ({ value: item, path: ["items", index] }));
  }
  return [{ value, path: [] }];
}

function duplicateProblems(found: readonly FoundObject[]): ConfigurationProblem[] {
  const firstOf = new Map<string, FoundObject>();
  return found.flatMap((entry) => {
    const { object, fileName, line } = entry;
    const first = firstOf.get(keyOf(object));
    if (first === undefined) {
      firstOf.set(keyOf(object), entry);
      return [];
    }
    const { kind, metadata } = object;
    const name = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
    const message = `${kind} "${name}" already exists: it stands at ${first.fileName}:${first.line} too`;
    return [{ source: fileName, line, column: 0, path: "", message }];
  });
}
