import { type ApiAnswer, jsonAnswer } from "./api-answer.ts";
import { negotiate } from "./negotiate.ts";
import {
  READ_VERBS,
  type Resource,
  type ReviewResource,
  resources,
  resourcesOf,
  reviewResources,
} from "./resources.ts";

const REVIEW_VERBS = ["create"];

interface ApiGroup {
  readonly name: string;
  readonly versions: readonly { readonly groupVersion: string; readonly version: string }[];
  readonly preferredVersion: unknown;
}

/** `metav1.APIGroup` of every group but core. */
export function apiGroups(): ApiGroup[] {
  return Array.from(servedGroups(), ([name, versions]) => {
    const entries = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }));
    return { name, versions: entries, preferredVersion: entries[0] };
  });
}

/** The same groups as items of an `APIGroupDiscoveryList`. */
export function aggregatedGroups(): unknown[] {
  return Array.from(servedGroups(), ([name, versions]) => ({
    metadata: { name, creationTimestamp: null },
    versions: versions.map((version) => ({
      version,
      resources: [
        ...reviewsOf(name, version).map(aggregatedEntry),
        ...resourcesOf(name, version).map(aggregatedResource),
      ],
      freshness: "Current",
    })),
  }));
}

/** Answers `/apis/GROUP` and `/apis/GROUP/VERSION`; undefined for an unknown group. */
export function answerGroupPath(path: string, accept: string): ApiAnswer | undefined {
  const [, apis, group = "", version, ...more] = path.split("/");
  if (apis !== "apis" || more.length > 0) return undefined;
  if (version === undefined) {
    const found = apiGroups().find(({ name }) => name === group);
    if (found === undefined) return undefined;
    negotiate(accept);
    return jsonAnswer({ kind: "APIGroup", apiVersion: "v1", ...found });
  }
  const reviews = reviewsOf(group, version);
  const readable = resourcesOf(group, version);
  if (group === "" || reviews.length + readable.length === 0) return undefined;
  negotiate(accept);
  return jsonAnswer({
    kind: "APIResourceList",
    apiVersion: "v1",
    groupVersion: `${group}/${version}`,
    resources: [
      ...reviews.map(({ name, kind }) => ({
        name,
        singularName: kind.toLowerCase(),
        namespaced: false,
        kind,
        verbs: REVIEW_VERBS,
      })),
      ...readable.flatMap(resourceEntries),
    ],
  });
}

/**
 * All groups but core with their versions, the preferred one first. By name, which is
 * kube-apiserver's order of these groups.
 */
function servedGroups(): ReadonlyMap<string, readonly string[]> {
  const versionsOf = new Map<string, string[]>();
  for (const { group, version } of [...reviewResources, ...resources]) {
    if (group === "") continue;
    const versions = versionsOf.get(group) ?? [];
    if (!versions.includes(version)) versions.push(version);
    versionsOf.set(group, versions);
  }
  return new Map([...versionsOf].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function aggregatedEntry({ group, version, name, kind }: ReviewResource): unknown {
  return {
    resource: name,
    responseKind: { group, version, kind },
    scope: "Cluster",
    singularResource: kind.toLowerCase(),
    verbs: REVIEW_VERBS,
  };
}

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

/** The reviews of one group and version. */
function reviewsOf(group: string, version: string): readonly ReviewResource[] {
  return reviewResources.filter((review) => review.group === group && review.version === version);
}
