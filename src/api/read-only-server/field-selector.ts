import type { KubernetesObject } from "../objects.ts";
import { badRequest } from "../status.ts";
import type { Resource } from "./resources.ts";

export type ObjectMatcher = (object: KubernetesObject) => boolean;

/**
 * Parses `spec.nodeName=worker,status.phase!=Failed`; a backslash escapes a comma, equals sign or
 * backslash. Throws StatusError 400 for a term without operator or an unsupported field.
 */
export function parseFieldSelector(selector: string, resource: Resource): ObjectMatcher {
  const terms = selector.match(/(?:\\.|[^\\,])+/gs) ?? [];
  const requirements = terms.map((term) => parseTerm(term, selector, resource));
  return (object) => requirements.every((isMet) => isMet(object));
}

function parseTerm(term: string, selector: string, resource: Resource): ObjectMatcher {
  const parts = /^(?<field>(?:\\.|[^\\=!])*)(?<operator>==|!=|=)(?<value>.*)$/s.exec(term)?.groups;
  if (parts === undefined) throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  const { field = "", operator, value = "" } = parts;
  if (/(?<!\\)(?:\\\\)*=/.test(value)) {
    throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  }
  const fieldOf = selectableValue(field, resource);
  const wanted = value.replace(/\\(.)/gs, "$1");
  return (object) => (String(fieldOf(object) ?? "") === wanted) === (operator !== "!=");
}

function selectableValue(field: string, resource: Resource): (object: KubernetesObject) => unknown {
  if (field === "metadata.name") return ({ metadata }) => metadata.name;
  if (field === "metadata.namespace") return ({ metadata }) => metadata.namespace;
  const known = Object.hasOwn(resource.selectableFields, field)
    ? resource.selectableFields[field]
    : undefined;
  if (known === undefined) throw badRequest(`field label not supported: ${field}`);
  return known;
}
