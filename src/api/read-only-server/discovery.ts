import { type ApiAnswer, jsonAnswer } from "./api-answer.ts";
import { aggregatedGroups, apiGroups } from "./group-discovery.ts";
import { negotiate, type Representation } from "./negotiate.ts";
import { READ_VERBS, type Resource, resources } from "./resources.ts";

const AGGREGATED_GROUP = "apidiscovery.k8s.io";
const aggregatedForms: readonly Representation[] = ["v2", "v2beta1"].map((version) => ({
  as: "APIGroupDiscoveryList",
  group: AGGREGATED_GROUP,
  version,
}));

/** `/api`: the versions of the core group, or all its resources at once for clients since kubectl 1.26. */
export function answerCoreVersions(accept: string): ApiAnswer {
  const form = negotiate(accept, aggregatedForms);
  if (form) return aggregatedAnswer(form, [coreGroup()]);
  return jsonAnswer({
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: "" }],
  });
}

/** `/apis`: the groups besides the core one. */
export function answerGroups(accept: string): ApiAnswer {
  const form = negotiate(accept, aggregatedForms);
  if (form) return aggregatedAnswer(form, aggregatedGroups());
  return jsonAnswer({ kind: "APIGroupList", apiVersion: "v1", groups: apiGroups() });
}

/** `/api/v1`. */
export function answerCoreResources(accept: string): ApiAnswer {
  negotiate(accept);
  return jsonAnswer({ kind: "APIResourceList", groupVersion: "v1", resources: resources.flatMap(entriesOf) });
}

function entriesOf(resource: Resource): unknown[] {
  const { name, singularName, kind, isNamespaced, shortNames, categories, subresources } = resource;
  const own = {
    name,
    singularName,
    namespaced: isNamespaced,
    kind,
    verbs: READ_VERBS,
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

/** client-go takes the aggregated form only when Content-Type names it with all three parameters. */
function aggregatedAnswer({ as, group, version }: Representation, items: readonly unknown[]): ApiAnswer {
  const body = { kind: as, apiVersion: `${group}/${version}`, metadata: {}, items };
  const answer = jsonAnswer(body, `application/json;g=${group};v=${version};as=${as}`);
  return { ...answer, headers: { ...answer.headers, Vary: "Accept" } };
}

/** The core group has no name. */
function coreGroup(): unknown {
  return {
    metadata: { creationTimestamp: null },
    versions: [{ version: "v1", resources: resources.map(aggregatedEntry), freshness: "Current" }],
  };
}

function aggregatedEntry(resource: Resource): unknown {
  const { name, singularName, kind, isNamespaced, shortNames, categories, subresources } = resource;
  return {
    resource: name,
    responseKind: { group: "", version: "v1", kind },
    scope: isNamespaced ? "Namespaced" : "Cluster",
    singularResource: singularName,
    verbs: READ_VERBS,
    shortNames,
    categories,
    subresources: subresources.map((subresource) => ({
      subresource: subresource.name,
      responseKind: { group: "", version: "v1", kind: subresource.kind },
      verbs: subresource.verbs,
    })),
  };
}
