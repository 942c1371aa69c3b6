import { formatPath } from "../../config/configuration-error.ts";
import { nearestName } from "../../config/nearest-name.ts";
import type { FieldPath } from "../../config/yaml-documents.ts";
import { goQuote } from "../go-json.ts";
import { KNOWN_FIELDS } from "./known-fields.ts";

/** The API server's bound: it names no more of them (apimachinery's strict decoding). */
const MAX_UNKNOWN_FIELDS = 100;

export interface UnknownField {
  readonly path: FieldPath;
  /** In the API server's words, and with the name that was probably meant. */
  readonly message: string;
}

/** The fields of an object that its kind does not have, as strict field validation finds them. */
export function unknownFields(value: unknown, apiVersion: string, kind: string): UnknownField[] {
  const found: UnknownField[] = [];
  visit(value, apiVersion.endsWith("/v1beta1") ? `${kind}V1beta1` : kind, [], found);
  return found;
}

function visit(value: unknown, type: string, path: FieldPath, found: UnknownField[]): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) visit(item, type, [...path, index], found);
    return;
  }
  const fields = KNOWN_FIELDS.get(type);
  if (typeof value !== "object" || value === null || fields === undefined) return;
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= MAX_UNKNOWN_FIELDS) return;
    const memberPath = [...path, name];
    if (!fields.has(name)) {
      const nearest = nearestName(name, [...fields.keys()]);
      const meant = nearest === undefined ? "" : `; did you mean ${goQuote(nearest)}?`;
      found.push({
        path: memberPath,
        message: `unknown field ${goQuote(formatPath(memberPath))}${meant}`,
      });
      continue;
    }
    const memberType = fields.get(name);
    if (memberType !== undefined) visit(member, memberType, memberPath, found);
  }
}
