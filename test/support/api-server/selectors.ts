import type { ApiObject } from "../../../src/api/api-object.ts";
import { parseLabelSelector } from "../../../src/api/read-only-server/label-selector.ts";
import type { ResourcePath } from "./resources.ts";

export type IsWanted = (object: ApiObject) => boolean;

/** Namespace, name and both selectors of a request. Field selectors may name any field by its path. */
export function wantedBy({ namespace, name }: ResourcePath, query: URLSearchParams): IsWanted {
  const hasLabels = parseLabelSelector(query.get("labelSelector") ?? "");
  const terms = (query.get("fieldSelector") ?? "").split(",").filter((term) => term !== "");
  const fields = terms.map(fieldRequirement);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === undefined || object.metadata.name === name) &&
    hasLabels(object.metadata.labels ?? {}) &&
    fields.every((isMet) => isMet(object));
}

function fieldRequirement(term: string): IsWanted {
  const [, path = "", operator, value] = /^([^=!]+)(==|!=|=)(.*)$/.exec(term) ?? [];
  return (object) => (String(fieldOf(object, path.split(".")) ?? "") === value) === (operator !== "!=");
}

function fieldOf(value: unknown, [part, ...rest]: readonly string[]): unknown {
  if (part === undefined) return value;
  return fieldOf((value as Record<string, unknown> | undefined)?.[part], rest);
}
