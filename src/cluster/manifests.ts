import type { ApiObject } from "../api/api-object.ts";
import { isClusterObject, type KubernetesObject } from "../api/objects.ts";
import { readObject } from "../api/validation/read-object.ts";
import { ConfigurationError, type ConfigurationProblem } from "../config/configuration-error.ts";
import { FeatureGates } from "../config/feature-gates.ts";
import { type FieldPath, readYamlDocuments, type YamlDocument } from "../config/yaml-documents.ts";
import { impliedNamespaces, withDefaults, withIngressClasses } from "./defaulting.ts";
import { keyOf } from "./object-key.ts";
import { atOnce } from "./slices.ts";

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
  return atOnce(readingManifests(files, gates));
}

function* readingManifests(files: readonly ManifestFile[], gates: FeatureGates): Generator<void, Manifests> {
  const problems: ConfigurationProblem[] = [];
  const found: FoundObject[] = [];
  for (const file of files) yield* readFile(file, gates, problems, found);
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
  return atOnce(parsingManifests(files, gates));
}

/** The same, object by object, beside what else is to be done. */
export function* parsingManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates,
): Generator<void, KubernetesObject[]> {
  const { objects: read } = yield* readingManifests(files, gates);
  const given = read.filter(isClusterObject);
  const objects: KubernetesObject[] = [];
  for (const object of withIngressClasses(given)) {
    objects.push(withDefaults(object));
    yield;
  }
  return [...objects, ...impliedNamespaces(objects)];
}

function* readFile(
  file: ManifestFile,
  gates: FeatureGates,
  problems: ConfigurationProblem[],
  found: FoundObject[],
): Generator<void, void> {
  try {
    const documents = yield* readYamlDocuments(file.text, file.name);
    for (const document of documents) yield* readDocument(document, file.name, gates, problems, found);
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
  }
}

function* readDocument(
  document: YamlDocument,
  fileName: string,
  gates: FeatureGates,
  problems: ConfigurationProblem[],
  found: FoundObject[],
): Generator<void, void> {
  for (const { value, path } of itemsOf(document.value)) {
    yield;
    const reading = readObject(value, gates);
    const lineOf = (field: FieldPath) => document.lineOf([...path, ...field]);
    if (reading.isValid) {
      const { object, warnings } = reading;
      found.push({ object, warnings, fileName, line: lineOf([]) });
      continue;
    }
    for (const problem of reading.problems) {
      const line = lineOf(problem.path);
      // The sentence names the field itself, as the API server's does.
      problems.push({ source: fileName, line, column: 0, path: "", message: problem.message });
    }
  }
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
