import { READ_VERBS, type Resource } from "./resources.ts";

/** A resource and its subresources for an `APIResourceList`. */
export function resourceEntries(resource: Resource): unknown[] {
  const { name, singularName, kind, isNamespaced, shortNames, categories, subresources } = resource;
  const own = {
    name,
    singularName,
    namespaced: isNamespaced,
    kind,
    verbs: resource.verbs ?? READ_VERBS,
    shortNames,
    categories,
  };
  const below = subresources.map((subresource) => ({
    name: `${name}/${subresource.name}`,
    singularName: "",
    namespaced: isNamespaced,
    kind: subresource.kind,
    verbs: subresource.verbs,
  }));
  return [own, ...below];
}

/** The same for an `APIGroupDiscoveryList`. */
export function aggregatedResource(resource: Resource): unknown {
  const { group, version, name, singularName, kind, isNamespaced, shortNames, categories, subresources } =
    resource;
  return {
    resource: name,
    responseKind: { group, version, kind },
    scope: isNamespaced ? "Namespaced" : "Cluster",
    singularResource: singularName,
    verbs: resource.verbs ?? READ_VERBS,
    shortNames,
    categories,
    subresources: subresources.map((subresource) => ({
      subresource: subresource.name,
      responseKind: { group, version, kind: subresource.kind },
      verbs: subresource.verbs,
    })),
  };
}
