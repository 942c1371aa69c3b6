import { goQuote } from "@sluice/client/internal/api/go-json";
import { isRecord } from "@sluice/client/internal/api/status-body";
import { formatPath } from "@sluice/client/internal/config/configuration-error";
import { nearestName } from "@sluice/client/internal/config/nearest-name";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject, ObjectMeta } from "../api-object.ts";
import { type FieldError, fieldErrorText } from "../field-errors.ts";
import { kindShape } from "../validation/kubernetes-shapes.ts";
import type { Shape } from "../validation/shape.ts";
import { cannotBeHandled, decodeObject, type FieldValidation, type ObjectProblem } from "./decode-object.ts";
import { groupOf, type Strategy } from "./strategy.ts";

/**
 * Unknown fields that are reported for one object, as in apimachinery's strict decoding. Past it
 * the others are left out.
 */
const MAX_UNKNOWN_FIELDS = 100;

export const DEFAULT_NAMESPACE = "default";

type ObjectReading =
  | {
      readonly isValid: true;
      readonly object: ApiObject;
      readonly warnings: readonly string[];
      /**
       * From strict reading: fields for which only names and types were checked, such as
       * `spec.containers[].args`.
       */
      readonly unjudged: readonly string[];
    }
  | { readonly isValid: false; readonly problems: readonly ObjectProblem[] };

/**
 * Reads an untrusted object as a create, or as an update if `oldOf` has its kind and name: types,
 * conversion, defaults, gates, validation. The result needs no further checks.
 */
export function readObject(
  value: unknown,
  gates: FeatureGates = FeatureGates.defaults,
  fieldValidation: FieldValidation = "Ignore",
  oldOf: (object: ApiObject) => ApiObject | undefined = () => undefined,
): ObjectReading {
  const decoding = decodeObject(value, fieldValidation);
  if (!decoding.isDecoded) return { isValid: false, problems: [decoding.problem] };
  const { strategy } = decoding;
  if (fieldValidation === "Strict") {
    const { apiVersion, kind } = value as { apiVersion: string; kind: string };
    const unknown = unknownFields(value, kindShape(apiVersion, kind));
    // Skips validation, which would report mistyped fields as missing.
    if (unknown.length > 0) {
      const problems = unknown.map(({ path, message }) => ({
        path,
        message: `${cannotBeHandled(kind, apiVersion)}: strict decoding error: ${message}`,
      }));
      return { isValid: false, problems };
    }
  }
  const given = placed(decoding.object, strategy);
  const old = oldOf(given);
  const { object, errors } =
    old === undefined ? created(given, strategy, gates) : updated(given, old, strategy, gates);
  if (errors.length === 0) {
    const lost = lostFields(given, object).map(
      (path) => `${formatPath(path)} is dropped: its feature gate is off`,
    );
    const unjudged = fieldValidation === "Strict" ? unreadFields(value, decoding.shape) : [];
    return { isValid: true, object, warnings: [...strategy.warnings(object), ...lost], unjudged };
  }
  const subject = `${kindName(strategy)} ${goQuote(object.metadata.name ?? "")} is invalid`;
  const problems = errors.map((error) => ({
    path: error.path,
    message: `${subject}: ${fieldErrorText(error)}`,
  }));
  return { isValid: false, problems };
}

function created(given: ApiObject, strategy: Strategy, gates: FeatureGates) {
  const { status } = given;
  // A create would clear the status, but a manifest describes the current state.
  const { status: _, ...rest } = strategy.prepareForCreate(given, gates);
  const object: ApiObject = status === undefined ? rest : { ...rest, status };
  return { object, errors: strategy.validateCreate(object, gates) };
}

/** Like `kubectl apply`, replaces the stored version. */
function updated(given: ApiObject, old: ApiObject, strategy: Strategy, gates: FeatureGates) {
  const { resourceVersion } = old.metadata;
  const metadata = resourceVersion === undefined ? given.metadata : { ...given.metadata, resourceVersion };
  return prepareUpdate(strategy, { ...given, metadata }, old, gates);
}

/** The API server removes a cluster-scoped object's namespace. */
export function placed(object: ApiObject, { isNamespaced }: Strategy): ApiObject {
  if (!isNamespaced) {
    const { namespace: _, ...metadata } = object.metadata;
    return { ...object, metadata };
  }
  if (object.metadata.namespace) return object;
  return { ...object, metadata: { ...object.metadata, namespace: DEFAULT_NAMESPACE } };
}

/** `Pod`, `Ingress.networking.k8s.io`. */
function kindName(strategy: Strategy): string {
  const group = groupOf(strategy);
  return group === "" ? strategy.kind : `${strategy.kind}.${group}`;
}

/** The object to store, unless there are errors. */
interface PreparedWrite {
  readonly object: ApiObject;
  readonly errors: readonly FieldError[];
  readonly warnings: readonly string[];
}

/** Expects `next` with defaults, after admission. Takes server-owned fields from `old`. */
export function prepareUpdate(
  strategy: Strategy,
  next: ApiObject,
  old: ApiObject,
  gates: FeatureGates,
): PreparedWrite {
  const prepared = strategy.prepareForUpdate(withServerFields(next, old), old, gates);
  const errors = strategy.validateUpdate(prepared, old, gates);
  return { object: prepared, errors, warnings: [] };
}

/** rest.BeforeUpdate: an absent uid is kept from `old`; clients never set times and generation. */
export function withServerFields(next: ApiObject, old: ApiObject): ApiObject {
  const serverFields = ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];
  const kept = Object.fromEntries(
    serverFields.filter((name) => old.metadata[name] !== undefined).map((name) => [name, old.metadata[name]]),
  );
  const given = Object.entries(next.metadata).filter(([name]) => !serverFields.includes(name));
  const uid = next.metadata.uid || old.metadata.uid;
  const metadata = { ...Object.fromEntries(given), ...kept, ...(uid !== undefined && { uid }) } as ObjectMeta;
  return { ...next, metadata };
}

interface UnknownField {
  readonly path: FieldPath;
  /** Uses the API server's words, and names the most similar known field. */
  readonly message: string;
}

/** Fields that the object's kind does not have, as strict field validation finds them. */
export function unknownFields(value: unknown, shape: Shape): UnknownField[] {
  const found: UnknownField[] = [];
  visit(value, shape, [], found);
  return found;
}

function visit(value: unknown, shape: Shape, path: FieldPath, found: UnknownField[]): void {
  if (typeof value !== "object" || value === null) return;
  if (shape.json === "array" && Array.isArray(value)) {
    for (const [index, item] of value.entries()) visit(item, shape.items, [...path, index], found);
    return;
  }
  if (shape.json !== "map" && shape.json !== "struct") return;
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= MAX_UNKNOWN_FIELDS) return;
    const memberPath = [...path, name];
    if (shape.json === "map") visit(member, shape.values, memberPath, found);
    else if (Object.hasOwn(shape.fields, name)) visit(member, shape.fields[name] as Shape, memberPath, found);
    else found.push({ path: memberPath, message: unknownText(name, memberPath, Object.keys(shape.fields)) });
  }
}

function unknownText(name: string, path: FieldPath, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  const meant = nearest === undefined ? "" : `; did you mean ${goQuote(nearest)}?`;
  return `unknown field ${goQuote(formatPath(path))}${meant}`;
}

/** Fields of `before` that `after` lacks, outermost only. Expects lists of equal length. */
function lostFields(before: unknown, after: unknown, path: FieldPath = []): FieldPath[] {
  if (Array.isArray(before) && Array.isArray(after)) {
    return before.flatMap((item, index) => lostFields(item, after[index], [...path, index]));
  }
  if (!isRecord(before) || !isRecord(after)) return [];
  return Object.entries(before).flatMap(([name, member]) =>
    Object.hasOwn(after, name) ? lostFields(member, after[name], [...path, name]) : [[...path, name]],
  );
}

/**
 * The outermost fields of an object that a shape lacks, such as `spec.containers[].args`, each
 * once.
 */
function unreadFields(value: unknown, shape: Shape): string[] {
  const found = new Set<string>();
  collectUnread(value, shape, "", found);
  return [...found];
}

function collectUnread(value: unknown, shape: Shape, path: string, found: Set<string>): void {
  if (shape.json === "array" && Array.isArray(value)) {
    for (const item of value) collectUnread(item, shape.items, `${path}[]`, found);
    return;
  }
  if (shape.json !== "struct" || typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (member === null) continue;
    const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
    const memberPath = path === "" ? name : `${path}.${name}`;
    if (field === undefined) found.add(memberPath);
    else collectUnread(member, field, memberPath, found);
  }
}
