import { type ApiAnswer, jsonAnswer } from "./api-answer.ts";
import { aggregatedGroups, apiGroups } from "./group-discovery.ts";
import { negotiate, type Representation } from "./negotiate.ts";
import { aggregatedResource, resourceEntries } from "./resource-entries.ts";
import { resourcesOf } from "./resources.ts";

const AGGREGATED_GROUP = "apidiscovery.k8s.io";
const aggregatedForms: readonly Representation[] = ["v2", "v2beta1"].map((version) => ({
  as: "APIGroupDiscoveryList",
  group: AGGREGATED_GROUP,
  version,
}));

/** `/api`: the core group's versions, or all its resources at once for kubectl since 1.26. */
export function answerCoreVersions(accept: string): ApiAnswer {
  const form = negotiate(accept, aggregatedForms);
  if (form) return aggregatedAnswer(form, [coreGroup()]);
  return jsonAnswer({
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: "" }],
  });
}

/** `/apis`: all groups but core. */
export function answerGroups(accept: string): ApiAnswer {
  const form = negotiate(accept, aggregatedForms);
  if (form) return aggregatedAnswer(form, aggregatedGroups());
  return jsonAnswer({ kind: "APIGroupList", apiVersion: "v1", groups: apiGroups() });
}

/** `/api/v1`. */
export function answerCoreResources(accept: string): ApiAnswer {
  negotiate(accept);
  return jsonAnswer({
    kind: "APIResourceList",
    groupVersion: "v1",
    resources: resourcesOf("", "v1").flatMap(resourceEntries),
  });
}

/**
 * client-go accepts the aggregated form only if Content-Type names it with all three parameters.
 */
function aggregatedAnswer({ as, group, version }: Representation, items: readonly unknown[]): ApiAnswer {
  const body = { kind: as, apiVersion: `${group}/${version}`, metadata: {}, items };
  const answer = jsonAnswer(body, `application/json;g=${group};v=${version};as=${as}`);
  return { ...answer, headers: { ...answer.headers, Vary: "Accept" } };
}

/** The core group's name is empty. */
function coreGroup(): unknown {
  return {
    metadata: { creationTimestamp: null },
    versions: [
      { version: "v1", resources: resourcesOf("", "v1").map(aggregatedResource), freshness: "Current" },
    ],
  };
}
