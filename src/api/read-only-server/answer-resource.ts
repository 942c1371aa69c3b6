import { notFound } from "@sluice/client/internal/api/status";
import type { KubernetesObject } from "../objects.ts";
import { answerWatch } from "./answer-watch.ts";
import { type ApiAnswer, jsonAnswer } from "./api-answer.ts";
import { type ObjectMatcher, parseFieldSelector } from "./field-selector.ts";
import { parseLabelSelector } from "./label-selector.ts";
import { pageOf } from "./list-page.ts";
import { negotiate } from "./negotiate.ts";
import type { ObjectSource } from "./object-source.ts";
import { groupVersionOf, qualifiedNameOf, type Resource } from "./resources.ts";
import { includeObjectOf, tableForms, tableOf } from "./table.ts";

/** A parsed path below `/api/v1` or `/apis/GROUP/VERSION`. */
export interface ResourcePath {
  readonly resource: Resource;
  /** Undefined for every namespace, or a cluster-scoped resource. */
  readonly namespace: string | undefined;
  /** Undefined for the whole collection. */
  readonly name: string | undefined;
}

interface ReadContext {
  readonly source: ObjectSource;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly now: () => Date;
}

/** Answers get, list and watch of one resource. Throws StatusError. */
export function answerResource(path: ResourcePath, context: ReadContext): ApiAnswer {
  const { query, source } = context;
  const present = presenterOf(path.resource, context);
  if (isTrue(query.get("watch"))) {
    const isWatched = matcherOf(path, query);
    return answerWatch({
      resource: path.resource,
      source,
      query,
      isWatched,
      present: (object) => present.one(object),
      listMatching: () => source.list(path.resource.kind, path.namespace).filter(isWatched),
    });
  }
  if (path.name !== undefined) return jsonAnswer(present.one(requireObject(path, source)));
  const matching = source.list(path.resource.kind, path.namespace).filter(matcherOf(path, query));
  const { objects, metadata } = pageOf(matching, source.resourceVersion, query);
  return jsonAnswer(present.list(objects, metadata));
}

/** A query's boolean: absent, "0" and "false" are false; all else, even `?watch`, is true. */
function isTrue(value: string | null): boolean {
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

function requireObject(
  { resource, namespace = "", name = "" }: ResourcePath,
  source: ObjectSource,
): KubernetesObject {
  const object = source.get(resource.kind, namespace, name);
  if (object === undefined) throw notFound(qualifiedNameOf(resource), name);
  return object;
}

/** Matches objects below the path that both selectors of the query match. */
function matcherOf({ resource, namespace, name }: ResourcePath, query: URLSearchParams): ObjectMatcher {
  const hasLabels = parseLabelSelector(query.get("labelSelector") ?? "");
  const hasFields = parseFieldSelector(query.get("fieldSelector") ?? "", resource);
  return (object) =>
    object.kind === resource.kind &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === undefined || object.metadata.name === name) &&
    hasLabels(object.metadata.labels ?? {}) &&
    hasFields(object);
}

interface Presenter {
  one(object: KubernetesObject): unknown;
  list(objects: readonly KubernetesObject[], metadata: Readonly<Record<string, unknown>>): unknown;
}

/** Formats objects plainly or as Tables, by the client's Accept. */
function presenterOf(resource: Resource, { accept, query, now }: ReadContext): Presenter {
  const { kind } = resource;
  const form = negotiate(accept, tableForms);
  if (form === undefined) {
    return {
      one: (object) => object,
      list: (objects, metadata) => ({
        kind: `${kind}List`,
        apiVersion: groupVersionOf(resource),
        metadata,
        // The list already names its items' kind.
        items: objects.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item),
      }),
    };
  }
  const includeObject = includeObjectOf(query);
  return {
    one: (object) => {
      const { resourceVersion } = object.metadata;
      return tableOf(kind, [object], { resourceVersion }, { form, includeObject, now: now() });
    },
    list: (objects, metadata) => tableOf(kind, objects, metadata, { form, includeObject, now: now() }),
  };
}
