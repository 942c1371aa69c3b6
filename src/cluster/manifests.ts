import { createHash } from "node:crypto";
import { serialize } from "node:v8";
import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { parseYamlDocuments, readYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type ApiObject, keyOf } from "../api/api-object.ts";
import { isClusterObject, type KubernetesObject } from "../api/objects.ts";
import { decodeObject, type FieldValidation } from "../api/strategy/decode-object.ts";
import { placed, readObject } from "../api/strategy/read-object.ts";
import { FeatureGates } from "../config/feature-gates.ts";
import { atOnce } from "../lifecycle/slices.ts";
import { completing } from "./defaulting.ts";
import { foreignKindOf, PassedOver, UnjudgedFields } from "./foreign-kinds.ts";

export interface ManifestFile {
  readonly name: string;
  readonly text: string;
}

interface Manifests {
  /** Valid objects of every known kind. */
  readonly objects: readonly ApiObject[];
  /** `file:line: text`, in the words of an API server's Warning headers. */
  readonly warnings: readonly string[];
  /** One line for each file that has objects of unused kinds. */
  readonly passedOver: readonly string[];
  /** Fields whose API-server rules are not implemented here, in one line for each kind. */
  readonly unjudged: readonly string[];
}

/** Called with each line of `Manifests.passedOver`. */
type OnPassedOver = (line: string) => void;

/** The result of reading one item of a file. */
export interface ReadItem {
  readonly object: ApiObject;
  readonly warnings: readonly string[];
}

/** An item and its line, for checks across all files. */
export interface FoundItem extends ReadItem {
  readonly line: number;
  /** The digest of the item's text as written; "" unless `known` is given. */
  readonly digest: string;
}

/** An object of a kind that the gateway does not use. */
export interface ForeignItem {
  readonly line: number;
  readonly kind: string;
}

/** The content of one file. */
export interface FileReading {
  readonly name: string;
  readonly found: readonly FoundItem[];
  readonly problems: readonly ConfigurationProblem[];
  readonly foreign: readonly ForeignItem[];
}

/**
 * Validates manifests strictly, as an API server with these gates would; objects that are also in
 * `old` count as updates. Throws ConfigurationError with all files' problems and their lines.
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
  old: ReadonlyMap<string, ApiObject>,
): Generator<void, Manifests> {
  const unjudged = new UnjudgedFields();
  const readings = yield* readingFiles(files, { gates, fieldValidation, old, unjudged });
  return { ...(yield* joiningReadings(readings)), unjudged: unjudged.lines };
}

/**
 * Reads each file by itself, in steps between other work. Does not decode objects whose digest is
 * `known`.
 */
export function* readingFiles(
  files: readonly ManifestFile[],
  context: ReadContext,
): Generator<void, FileReading[]> {
  const readings: FileReading[] = [];
  for (const file of files) readings.push(yield* readingFile(file, context));
  return readings;
}

/** Throws ConfigurationError if any file has problems; it lists all of them. */
function* joiningReadings(readings: readonly FileReading[]): Generator<void, Omit<Manifests, "unjudged">> {
  const problems = readings.flatMap((reading) => reading.problems);
  const firstOf = new Map<string, string>();
  const objects: ApiObject[] = [];
  const warnings: string[] = [];
  for (const { name, found } of readings) {
    for (const { object, line, warnings: own } of found) {
      const key = keyOf(object);
      const first = firstOf.get(key);
      if (first === undefined) firstOf.set(key, `${name}:${line}`);
      else problems.push(duplicateProblem(object, first, { name, line }));
      objects.push(object);
      for (const warning of own) warnings.push(`${name}:${line}: ${warning}`);
      yield;
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return { objects, warnings, passedOver: passedOverLines(readings) };
}

function passedOverLines(readings: readonly FileReading[]): string[] {
  const passedOver = new PassedOver();
  for (const { name, foreign } of readings) for (const { kind } of foreign) passedOver.add(name, kind);
  return passedOver.lines;
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

/** The same as `readClusterObjects`, in steps between other work. */
export function* parsingManifests(
  files: readonly ManifestFile[],
  gates: FeatureGates,
  onPassedOver: OnPassedOver = () => {},
): Generator<void, KubernetesObject[]> {
  return yield* joiningFiles(yield* readingFiles(files, { gates }), onPassedOver);
}

/** The cluster objects of files already read, with defaults. Throws as `readManifests`. */
export function* joiningFiles(
  readings: readonly FileReading[],
  onPassedOver: OnPassedOver,
): Generator<void, KubernetesObject[]> {
  const { objects: read, passedOver } = yield* joiningReadings(readings);
  for (const line of passedOver) onPassedOver(line);
  const given: KubernetesObject[] = [];
  for (const object of read) {
    if (isClusterObject(object)) given.push(object);
    yield;
  }
  return yield* completing(given);
}

interface ReadContext {
  readonly gates: FeatureGates;
  /** Absent: "Ignore". */
  readonly fieldValidation?: FieldValidation;
  /** The objects that updates replace, by `keyOf`. */
  readonly old?: ReadonlyMap<string, ApiObject>;
  readonly unjudged?: UnjudgedFields;
  /** Items from earlier readings with these gates, by digest. */
  readonly known?: ReadonlyMap<string, ReadItem> | undefined;
}

function* readingFile({ name, text }: ManifestFile, context: ReadContext): Generator<void, FileReading> {
  const found: FoundItem[] = [];
  const problems: ConfigurationProblem[] = [];
  const foreign: ForeignItem[] = [];
  try {
    const documents = yield* readYamlDocuments(text, name, { isManifest: true });
    for (const document of documents) {
      for (const { value, path } of itemsOf(document.value)) {
        yield;
        const kind = foreignKindOf(value);
        if (kind !== undefined) foreign.push({ line: document.lineOf(path), kind });
        else
          readItem(value, context, (field) => document.lineOf([...path, ...field]), {
            found,
            problems,
            name,
          });
      }
    }
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    problems.push(...error.problems);
  }
  return { name, found, problems, foreign };
}

function readItem(
  value: unknown,
  { gates, fieldValidation = "Ignore", old, unjudged, known }: ReadContext,
  lineOf: (field: FieldPath) => number,
  { found, problems, name }: { found: FoundItem[]; problems: ConfigurationProblem[]; name: string },
): void {
  const digest = known === undefined ? "" : digestOf(value);
  const before = known?.get(digest);
  if (before !== undefined) {
    found.push({ ...before, digest, line: lineOf([]) });
    return;
  }
  const reading = readObject(value, gates, fieldValidation, (object) => old?.get(keyOf(object)));
  if (reading.isValid) {
    const { object, warnings } = reading;
    unjudged?.add(object.kind, reading.unjudged);
    found.push({ object, warnings, digest, line: lineOf([]) });
    return;
  }
  for (const { path, message } of reading.problems) {
    // The message already names the field, as the API server's does.
    problems.push({ source: name, line: lineOf(path), column: 0, path: "", message });
  }
}

/** Distinguishes values that JSON does not, such as infinities and null. */
function digestOf(value: unknown): string {
  return createHash("sha256").update(serialize(value)).digest("base64");
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

function duplicateProblem(
  { kind, metadata }: ApiObject,
  first: string,
  { name: source, line }: { readonly name: string; readonly line: number },
): ConfigurationProblem {
  const name = metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
  const message = `${kind} "${name}" already exists: it stands at ${first} too`;
  return { source, line, column: 0, path: "", message };
}
