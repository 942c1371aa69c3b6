import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import {
  type FieldPath,
  parseYamlDocuments,
  readYamlDocuments,
  type YamlDocument,
} from "@sluice/client/internal/config/yaml-documents";
import type { ApiObject } from "../api/api-object.ts";
import { keyOf } from "../api/api-object.ts";
import { isClusterObject, type KubernetesObject } from "../api/objects.ts";
import { decodeObject } from "../api/strategy/decode-object.ts";
import { type FieldValidation, placed, readObject } from "../api/strategy/read-object.ts";
import { FeatureGates } from "../config/feature-gates.ts";
import { impliedNamespaces, withDefaults, withIngressClasses } from "./defaulting.ts";
import { foreignKindOf, PassedOver } from "./foreign-kinds.ts";
import { atOnce } from "../lifecycle/slices.ts";
import { UnjudgedFields } from "./unjudged-fields.ts";

export interface ManifestFile {
  readonly name: string;
  readonly text: string;
}

interface Manifests {
  /** Valid objects of every known kind. */
  readonly objects: readonly ApiObject[];
  /** `file:line: text`, in the words of an API server's Warning headers. */
  readonly warnings: readonly string[];
  /** One line for each file with objects of unused kinds. */
  readonly passedOver: readonly string[];
  /** Fields whose API-server rules are not implemented here, a line for each kind. */
  readonly unjudged: readonly string[];
}

/** Receives the lines of `Manifests.passedOver`. */
export type OnPassedOver = (line: string) => void;

/** An object and its position, for checks that need all files. */
interface FoundObject {
  readonly object: ApiObject;
  readonly warnings: readonly string[];
  readonly fileName: string;
  readonly line: number;
}

/**
 * Validates manifests strictly, as an API server with these gates would; objects among the `old`
 * ones are updates. Throws ConfigurationError with the problems of all files, with lines.
 */
export function readManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates = FeatureGates.defaults,
  old: readonly ManifestFile[] = [],
): Manifests {
  return atOnce(readingManifests(files, gates, "Strict", readOldObjects(old)));
}

function* readingManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates,
  fieldValidation: FieldValidation,
  old: ReadonlyMap<string, ApiObject> = new Map(),
): Generator<void, Manifests> {
  const problems: ConfigurationProblem[] = [];
  const found: FoundObject[] = [];
  const passedOver = new PassedOver();
  const unjudged = new UnjudgedFields();
  const context = { gates, fieldValidation, old, problems, found, passedOver, unjudged };
  for (const file of files) yield* readFile(file, context);
  problems.push(...duplicateProblems(found));
  if (problems.length > 0) throw new ConfigurationError(problems);
  const warnings = found.flatMap(({ fileName, line, warnings }) =>
    warnings.map((warning) => `${fileName}:${line}: ${warning}`),
  );
  return {
    objects: found.map(({ object }) => object),
    warnings,
    passedOver: passedOver.lines,
    unjudged: unjudged.lines,
  };
}

/**
 * The files' cluster objects, with defaults. Also validates kinds that the store does not hold.
 * Throws as `readManifests`.
 */
export function parseManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates = FeatureGates.defaults,
  onPassedOver: OnPassedOver = () => {},
): KubernetesObject[] {
  return atOnce(parsingManifests(files, gates, onPassedOver));
}

/** The same in steps between other work. */
export function* parsingManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates,
  onPassedOver: OnPassedOver = () => {},
): Generator<void, KubernetesObject[]> {
  const { objects: read, passedOver } = yield* readingManifests(files, gates, "Ignore");
  for (const line of passedOver) onPassedOver(line);
  const given = read.filter(isClusterObject);
  const objects: KubernetesObject[] = [];
  for (const object of withIngressClasses(given)) {
    objects.push(withDefaults(object));
    yield;
  }
  return [...objects, ...impliedNamespaces(objects)];
}

interface ReadContext {
  readonly gates: FeatureGates;
  readonly fieldValidation: FieldValidation;
  /** The objects that updates replace, by `keyOf`. */
  readonly old: ReadonlyMap<string, ApiObject>;
  readonly problems: ConfigurationProblem[];
  readonly found: FoundObject[];
  readonly passedOver: PassedOver;
  readonly unjudged: UnjudgedFields;
}

function* readFile(file: ManifestFile, context: ReadContext): Generator<void, void> {
  try {
    const documents = yield* readYamlDocuments(file.text, file.name, { isManifest: true });
    for (const document of documents) {
      yield* readDocument(document, file.name, context);
    }
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    context.problems.push(...error.problems);
  }
}

function* readDocument(
  document: YamlDocument,
  fileName: string,
  { gates, fieldValidation, old, problems, found, passedOver, unjudged }: ReadContext,
): Generator<void, void> {
  for (const { value, path } of itemsOf(document.value)) {
    yield;
    const foreign = foreignKindOf(value);
    if (foreign !== undefined) {
      passedOver.add(fileName, foreign);
      continue;
    }
    const reading = readObject(value, gates, fieldValidation, (object) => old.get(keyOf(object)));
    const lineOf = (field: FieldPath) => document.lineOf([...path, ...field]);
    if (reading.isValid) {
      const { object, warnings } = reading;
      unjudged.add(object.kind, reading.unjudged);
      found.push({ object, warnings, fileName, line: lineOf([]) });
      continue;
    }
    for (const problem of reading.problems) {
      const line = lineOf(problem.path);
      // The message already names the field, as the API server's does.
      problems.push({ source: fileName, line, column: 0, path: "", message: problem.message });
    }
  }
}

/** Objects that the cluster already holds; newer rules do not apply to them. */
function readOldObjects(files: readonly ManifestFile[]): ReadonlyMap<string, ApiObject> {
  const objects = new Map<string, ApiObject>();
  const problems: ConfigurationProblem[] = [];
  for (const { name, text } of files) {
    for (const document of parseYamlDocuments(text, name, { isManifest: true })) {
      for (const { value, path } of itemsOf(document.value)) {
        if (foreignKindOf(value) !== undefined) continue;
        const decoding = decodeObject(value);
        if (decoding.isDecoded) {
          const object = placed(decoding.object, decoding.strategy);
          objects.set(keyOf(object), object);
          continue;
        }
        const line = document.lineOf([...path, ...decoding.problem.path]);
        problems.push({ source: name, line, column: 0, path: "", message: decoding.problem.message });
      }
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return objects;
}

/** `kubectl get -o yaml` writes several objects as one List; lists do not nest. */
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
