import { isRecord } from "@sluice/client/internal/api/status-body";
import { aggregatedAnswer, aggregatedForms } from "../api/read-only-server/answer-api-request.ts";
import { type ApiAnswer, jsonAnswer } from "../api/read-only-server/api-answer.ts";
import { aggregatedResource, resourceEntries } from "../api/read-only-server/group-discovery.ts";
import { negotiate } from "../api/read-only-server/negotiate.ts";
import type { Resource } from "../api/read-only-server/resources.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { OPEN_API_DOCUMENT, OPEN_API_INDEX, OPEN_API_PATH } from "./open-api.ts";
import { RECORDINGS } from "./recording-object.ts";
import { SESSIONS_GROUP, SESSIONS_VERSION, STREAMING_SESSIONS } from "./streaming-session.ts";

const RESOURCES = [STREAMING_SESSIONS, RECORDINGS];
const GROUP_VERSION = `${SESSIONS_GROUP}/${SESSIONS_VERSION}`;
const VERSION = { groupVersion: GROUP_VERSION, version: SESSIONS_VERSION };
const GROUP = { name: SESSIONS_GROUP, versions: [VERSION], preferredVersion: VERSION };
/** The group's entry in an `APIGroupDiscoveryList`. */
const aggregatedGroupOf = (resources: readonly Resource[]): object => ({
  metadata: { name: SESSIONS_GROUP, creationTimestamp: null },
  versions: [
    { version: SESSIONS_VERSION, resources: resources.map(aggregatedResource), freshness: "Current" },
  ],
});
const AGGREGATED_GROUP = aggregatedGroupOf(RESOURCES);

/** `/apis/sluice.dev`. */
const API_GROUP: object = { kind: "APIGroup", apiVersion: "v1", ...GROUP };

const resourceListOf = (resources: readonly Resource[]): object => ({
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion: GROUP_VERSION,
  resources: resources.flatMap(resourceEntries),
});

/** The answers about the group itself, by their paths. */
export const GROUP_DOCUMENTS: ReadonlyMap<string, object> = new Map([
  [`/apis/${SESSIONS_GROUP}`, API_GROUP],
  [`/apis/${GROUP_VERSION}`, resourceListOf(RESOURCES)],
  [OPEN_API_PATH, OPEN_API_DOCUMENT],
]);

/**
 * Adds this group to the end of an answer to `/apis`, in either form. Undefined if the answer is
 * not a list of groups, or if its API server already forwards the group to the gateway.
 */
export function withSessionsGroup(answer: unknown): object | undefined {
  if (!isRecord(answer)) return undefined;
  const { kind, groups, items } = answer;
  if (kind === "APIGroupList" && Array.isArray(groups)) {
    if (groups.some((group) => isRecord(group) && group.name === SESSIONS_GROUP)) return undefined;
    return { ...answer, groups: [...groups, GROUP] };
  }
  if (kind !== "APIGroupDiscoveryList" || !Array.isArray(items)) return undefined;
  const isOurs = (item: unknown): boolean =>
    isRecord(item) && isRecord(item.metadata) && item.metadata.name === SESSIONS_GROUP;
  return items.some(isOurs) ? undefined : { ...answer, items: [...items, AGGREGATED_GROUP] };
}

/**
 * kube-apiserver's own users, as which it reads discovery and OpenAPI from an APIService's server.
 */
const AGGREGATORS: readonly string[] = ["system:kube-aggregator", "system:aggregator"];

export const isAggregator = (name: string): boolean => AGGREGATORS.includes(name);

/**
 * The namespace controller reads these through the API server, and would delete a namespace's
 * objects, recordings too, if they had the verb. kubectl deletes without it.
 */
const UNDELETED = RESOURCES.map((resource) => ({
  ...resource,
  verbs: (resource.verbs ?? []).filter((verb) => verb !== "delete"),
}));

/**
 * Answers an API server's requests about this group. If they were forwarded, it would get its own
 * groups and request OpenAPI in circles. Undefined for other paths. Throws StatusError 404, 406.
 */
export function answerAggregator(path: string, accept: string): ApiAnswer | undefined {
  if (path === "/openapi/v3") return jsonAnswer(OPEN_API_INDEX);
  if (path === OPEN_API_PATH) return jsonAnswer(OPEN_API_DOCUMENT);
  if (path.startsWith("/openapi/")) throw WIRE_ERRORS["path-unknown"].streaming();
  if (path === `/apis/${SESSIONS_GROUP}`) return jsonAnswer(API_GROUP);
  if (path === `/apis/${GROUP_VERSION}`) return jsonAnswer(resourceListOf(UNDELETED));
  if (path !== "/apis") return undefined;
  const form = negotiate(accept, aggregatedForms);
  if (form !== undefined) return aggregatedAnswer(form, [aggregatedGroupOf(UNDELETED)]);
  return jsonAnswer({ kind: "APIGroupList", apiVersion: "v1", groups: [GROUP] });
}
