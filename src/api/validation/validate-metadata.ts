import { isDeepStrictEqual } from "node:util";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import type { ObjectMeta } from "../api-object.ts";
import { type FieldError, forbiddenField, invalidValue, required, tooLong } from "../field-errors.ts";
import { labelProblems, labelValueProblems, qualifiedNameProblems } from "./name-rules.ts";

/** Kubernetes' limit for all annotations of an object together. */
const MAX_ANNOTATIONS_BYTES = 256 * 1024;

export const FIELD_IS_IMMUTABLE = "field is immutable";

const IMMUTABLE_FIELDS = [
  "name",
  "namespace",
  "uid",
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
] as const;

interface MetadataRules {
  readonly isNamespaced: boolean;
  nameProblems(name: string): string[];
}

/** The API server's checks of metadata, in its order. */
export function validateMetadata(metadata: ObjectMeta, rules: MetadataRules): FieldError[] {
  const { name = "", namespace = "", labels = {}, annotations = {} } = metadata;
  return [
    ...nameErrors(name, metadata.generateName, rules),
    ...namespaceErrors(namespace, rules),
    ...labelErrors(labels, ["metadata", "labels"]),
    ...annotationErrors(annotations, ["metadata", "annotations"]),
  ];
}

function nameErrors(name: string, generateName: unknown, rules: MetadataRules): FieldError[] {
  const path = ["metadata", "name"];
  if (name === "" && generateName) {
    return [required(path, "a file must say it: kubectl apply cannot use generateName")];
  }
  // The API server would generate a name from generateName; a file must state it.
  if (name === "") return [required(path, "name or generateName is required")];
  return rules.nameProblems(name).map((problem) => invalidValue(path, name, problem));
}

function namespaceErrors(namespace: string, { isNamespaced }: MetadataRules): FieldError[] {
  const path = ["metadata", "namespace"];
  if (!isNamespaced) return namespace === "" ? [] : [forbiddenField(path, "not allowed on this type")];
  return labelProblems(namespace).map((problem) => invalidValue(path, namespace, problem));
}

export function labelErrors(labels: Readonly<Record<string, string>>, path: FieldPath): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedNameProblems(key).map((problem) => invalidValue(path, key, problem)),
    ...labelValueProblems(value).map((problem) => invalidValue(path, value, problem)),
  ]);
}

export function annotationErrors(
  annotations: Readonly<Record<string, string>>,
  path: FieldPath,
): FieldError[] {
  const errors = Object.keys(annotations).flatMap((key) =>
    // Kubernetes checks annotation keys in lower case.
    qualifiedNameProblems(key.toLowerCase()).map((problem) => invalidValue(path, key, problem)),
  );
  const bytes = new TextEncoder().encode(Object.entries(annotations).flat().join("")).byteLength;
  return bytes > MAX_ANNOTATIONS_BYTES ? [...errors, tooLong(path, MAX_ANNOTATIONS_BYTES)] : errors;
}

/** Checks an object's immutable metadata. The store detects outdated resourceVersions. */
export function validateMetadataUpdate(next: ObjectMeta, old: ObjectMeta): FieldError[] {
  const { generation = 0 } = next;
  const isDecremented = Number(generation) < Number(old.generation ?? 0);
  return [
    ...(isDecremented
      ? [invalidValue(["metadata", "generation"], generation, "must not be decremented")]
      : []),
    ...IMMUTABLE_FIELDS.filter((name) => !isDeepStrictEqual(next[name], old[name])).map((name) =>
      invalidValue(["metadata", name], next[name], FIELD_IS_IMMUTABLE),
    ),
  ];
}
