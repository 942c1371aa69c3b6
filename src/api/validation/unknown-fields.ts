import { goQuote } from "@sluice/client/internal/api/go-json";
import { isRecord } from "@sluice/client/internal/api/status-body";
import { formatPath } from "@sluice/client/internal/config/configuration-error";
import { nearestName } from "@sluice/client/internal/config/nearest-name";
import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import type { Shape } from "./shape.ts";

/**
 * Unknown fields of one object that are reported, as in apimachinery's strict decoding. Past it
 * they are left out.
 */
const MAX_UNKNOWN_FIELDS = 100;

interface UnknownField {
  readonly path: FieldPath;
  /** In the API server's words, with the most similar known name. */
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
export function lostFields(before: unknown, after: unknown, path: FieldPath = []): FieldPath[] {
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
export function unreadFields(value: unknown, shape: Shape): string[] {
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
