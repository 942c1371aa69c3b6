import { notFound, resourceExpired } from "../../../packages/client/src/api/status.ts";
import type { ApiObject } from "../../../src/api/api-object.ts";
import type { ServedObject } from "../../../src/api/objects.ts";
import { includeObjectOf, tableForms, tableOf } from "../../../src/api/read-only-server/answer-resource.ts";
import { printerOf } from "../../../src/api/read-only-server/columns.ts";
import { ageOf } from "../../../src/api/read-only-server/human-duration.ts";
import { negotiate } from "../../../src/api/read-only-server/negotiate.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import type { ObjectStore } from "./object-store.ts";
import { groupVersionOf, qualifiedName, type Resource, type ResourcePath } from "./resources.ts";
import { wantedBy } from "./selectors.ts";
import { inVersionOf } from "./versions.ts";

export type Present = (object: ApiObject) => unknown;

/** Throws StatusError 404, and 410 for a continue token of a compacted version. */
export function getOrList(
  path: ResourcePath,
  query: URLSearchParams,
  accept: string,
  store: ObjectStore,
): unknown {
  const { resource, namespace, name } = path;
  const table = tablePresenter(resource, query, accept);
  if (name !== undefined) {
    const stored = store.get(resource, namespace ?? "", name);
    if (stored === undefined) throw notFound(qualifiedName(resource), name);
    const found = inVersionOf(resource, stored);
    return table === undefined ? found : table([found], { resourceVersion: found.metadata.resourceVersion });
  }
  const limit = Number(query.get("limit") ?? 0);
  const page = store.page(resource, namespace, limit, query.get("continue") ?? "", wantedBy(path, query));
  if (page === undefined) {
    throw resourceExpired(
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
    );
  }
  const metadata = {
    resourceVersion: String(page.version),
    ...(page.continueToken !== undefined && {
      continue: page.continueToken,
      remainingItemCount: page.remaining,
    }),
  };
  if (table !== undefined) return table(page.objects, metadata);
  const objects = page.objects.map((object) => inVersionOf(resource, object));
  const items = objects.map(({ kind: _, apiVersion: __, ...item }) => item);
  return { kind: `${resource.kind}List`, apiVersion: groupVersionOf(resource), metadata, items };
}

/** How a watch shows an object; undefined: unchanged. */
export function watchPresenter(
  resource: Resource,
  query: URLSearchParams,
  accept: string,
): Present | undefined {
  const table = tablePresenter(resource, query, accept);
  if (table) return (object) => table([object], { resourceVersion: object.metadata.resourceVersion });
  const isHeldVersion = strategyOf(resource.kind)?.otherVersions[groupVersionOf(resource)] === undefined;
  return isHeldVersion ? undefined : (object) => inVersionOf(resource, object);
}

function tablePresenter(resource: Resource, query: URLSearchParams, accept: string) {
  const form = negotiate(accept, tableForms);
  if (form === undefined) return undefined;
  const options = { form, includeObject: includeObjectOf(query), now: new Date() };
  return (objects: readonly ApiObject[], metadata: Readonly<Record<string, unknown>>): unknown => {
    if (/^(?:Pod|Node|Namespace|Service|Ingress|IngressClass)$/.test(resource.kind)) {
      return tableOf(printerOf(resource.kind as ServedObject["kind"]), objects, metadata, options);
    }
    const column = (name: string) => ({
      name,
      type: "string",
      format: name === "Name" ? "name" : "",
      description: "",
      priority: 0,
    });
    return {
      kind: "Table",
      apiVersion: `meta.k8s.io/${form.version}`,
      metadata,
      columnDefinitions: [column("Name"), column("Age")],
      rows: objects.map((object) => ({
        cells: [object.metadata.name, ageOf(object.metadata.creationTimestamp, options.now)],
        object: {
          kind: "PartialObjectMetadata",
          apiVersion: `meta.k8s.io/${form.version}`,
          metadata: object.metadata,
        },
      })),
    };
  };
}
