import { methodNotAllowed, StatusError, unknownPath } from "@sluice/client/internal/api/status";
import { NEVER_CACHED, statusBody, statusHeaders } from "@sluice/client/internal/api/status-body";
import { answerResource, type ResourcePath } from "./answer-resource.ts";
import { type ApiAnswer, jsonAnswer, type ObjectSource } from "./api-answer.ts";
import {
  aggregatedGroups,
  aggregatedResource,
  answerGroupPath,
  apiGroups,
  resourceEntries,
} from "./group-discovery.ts";
import { negotiate, type Representation } from "./negotiate.ts";
import { qualifiedNameOf, resourcesOf, reviewAt } from "./resources.ts";

interface ApiRequest {
  readonly method: string;
  /** Without query, percent-encoded as received. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** The Accept header; empty if absent. */
  readonly accept: string;
}

const AGGREGATED_GROUP = "apidiscovery.k8s.io";
/** All resources of a server at once, for kubectl since 1.26 and for API servers. */
export const aggregatedForms: readonly Representation[] = ["v2", "v2beta1"].map((version) => ({
  as: "APIGroupDiscoveryList",
  group: AGGREGATED_GROUP,
  version,
}));

/** `/api`: the core group's versions, or all its resources at once for kubectl since 1.26. */
function answerCoreVersions(accept: string): ApiAnswer {
  const form = negotiate(accept, aggregatedForms);
  if (form) return aggregatedAnswer(form, [coreGroup()]);
  return jsonAnswer({
    kind: "APIVersions",
    versions: ["v1"],
    serverAddressByClientCIDRs: [{ clientCIDR: "0.0.0.0/0", serverAddress: "" }],
  });
}

/** `/apis`: all groups but core. */
function answerGroups(accept: string): ApiAnswer {
  const form = negotiate(accept, aggregatedForms);
  if (form) return aggregatedAnswer(form, aggregatedGroups());
  return jsonAnswer({ kind: "APIGroupList", apiVersion: "v1", groups: apiGroups() });
}

/** `/api/v1`. */
function answerCoreResources(accept: string): ApiAnswer {
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
export function aggregatedAnswer(
  { as, group, version }: Representation,
  items: readonly unknown[],
): ApiAnswer {
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

export interface ReadOnlyApiOptions {
  readonly version: ServerVersion;
  readonly now: () => Date;
  /** False during shutdown: `/readyz` then fails, so that load balancers choose other replicas. */
  readonly isReady?: () => boolean;
}

/**
 * Serves kubectl's requests besides streaming: versions, discovery, health, cluster state. Errors
 * become a Status. Undefined for streaming subresources. Expects an authorized caller.
 */
export function answerApiRequest(
  request: ApiRequest,
  source: ObjectSource,
  options: ReadOnlyApiOptions,
): ApiAnswer | undefined {
  try {
    if (isStreaming(request.path)) return undefined;
    return answer(request, source, options);
  } catch (error) {
    if (error instanceof StatusError) return statusAnswer(error);
    throw error;
  }
}

function answer(
  { method, path, query, accept }: ApiRequest,
  source: ObjectSource,
  options: ReadOnlyApiOptions,
): ApiAnswer {
  const isRead = method === "GET";
  const fixedPath = path.replace(SLASH_AT_END, "");
  const fixed = fixedAnswers[fixedPath];
  if (fixed && Object.hasOwn(fixedAnswers, fixedPath)) {
    if (!isRead && method !== "HEAD") throw methodNotAllowed(method);
    return fixed(accept, options);
  }
  const group = isRead ? answerGroupPath(path, accept) : undefined;
  if (group !== undefined) return group;
  const review = reviewAt(path);
  if (review !== undefined) throw methodNotAllowed(method, review.name);
  const resourcePath = parseResourcePath(path);
  if (resourcePath === undefined) throw unknownPath();
  if (!isRead) throw methodNotAllowed(method, qualifiedNameOf(resourcePath.resource), resourcePath.name);
  return answerResource(resourcePath, { source, query, accept, now: options.now });
}

/** kube-apiserver's router ignores it, too; kr8s sends such requests. */
const SLASH_AT_END = /(?<=^\/(?:version|api|api\/v1|apis))\/$/;

const fixedAnswers: Readonly<Record<string, (accept: string, options: ReadOnlyApiOptions) => ApiAnswer>> = {
  "/": () =>
    jsonAnswer({
      paths: Object.keys(fixedAnswers)
        .filter((path) => path !== "/")
        .concat(
          apiGroups().flatMap(({ name, versions }) => [
            `/apis/${name}`,
            ...versions.map(({ groupVersion }) => `/apis/${groupVersion}`),
          ]),
        )
        .sort(),
    }),
  "/version": (_, { version }) => jsonAnswer(versionInfo(version)),
  "/api": answerCoreVersions,
  "/api/v1": answerCoreResources,
  "/apis": answerGroups,
  "/openapi/v3": () => jsonAnswer({ paths: {} }),
  "/healthz": () => textAnswer(200, "ok"),
  "/livez": () => textAnswer(200, "ok"),
  "/readyz": (_, { isReady }) =>
    isReady === undefined || isReady()
      ? textAnswer(200, "ok")
      : textAnswer(500, "[-]shutdown failed: reason withheld\nreadyz check failed\n"),
};

/** `/api/v1/pods`, `/api/v1/nodes/worker`, `/apis/networking.k8s.io/v1/namespaces/default/ingresses/web`. */
function parseResourcePath(path: string): ResourcePath | undefined {
  const [root, ...segments] = segmentsOf(path) ?? [];
  const [group, version, ...rest] =
    root === "api" ? ["", ...segments] : root === "apis" && segments[0] !== "" ? segments : [];
  if (group === undefined || version === undefined) return undefined;
  const [first, second, third, fourth, ...more] = rest;
  if (more.length > 0) return undefined;
  const isInNamespace = first === "namespaces" && third !== undefined;
  const resourceName = isInNamespace ? third : first;
  const resource = resourcesOf(group, version).find(({ name }) => name === resourceName);
  if (resource === undefined || (isInNamespace && !resource.isNamespaced)) return undefined;
  if (isInNamespace) return { resource, namespace: second, name: fourth };
  // `/api/v1/pods/web` names a pod without a namespace; only collections span all namespaces.
  if (third !== undefined || (resource.isNamespaced && second !== undefined)) return undefined;
  return { resource, namespace: undefined, name: second };
}

/**
 * The decoded segments; undefined if one is empty or invalid, since no resource has such a path.
 */
function segmentsOf(path: string): string[] | undefined {
  try {
    const segments = path.slice(1).split("/").map(decodeURIComponent);
    return segments.includes("") ? undefined : segments;
  } catch {
    return undefined;
  }
}

function isStreaming(path: string): boolean {
  const segments = segmentsOf(path.replace(/\/$/, ""));
  const [api, version, namespaces, , pods, , subresource, ...more] = segments ?? [];
  const isBelowPod = api === "api" && version === "v1" && namespaces === "namespaces" && pods === "pods";
  return isBelowPod && more.length === 0 && /^(?:exec|attach|portforward)$/.test(subresource ?? "");
}

/** The contents of `/version`. */
interface ServerVersion {
  /**
   * Semantic version with its `v`, such as `v1.36.0+sluice-0.1.0`; kubectl compares its own major
   * and minor with it.
   */
  readonly gitVersion: string;
  /** Such as `process.version`; `kubectl version -o yaml` prints it. */
  readonly runtime: string;
  /** `linux/amd64`. */
  readonly platform: string;
}

/** version.Info with every key that clients may read. The Go compiler's fields name our runtime. */
function versionInfo({ gitVersion, runtime, platform }: ServerVersion): Readonly<Record<string, string>> {
  const [major = "", minor = ""] = gitVersion.replace(/^v/, "").split(".");
  return {
    major,
    minor,
    gitVersion,
    gitCommit: "",
    gitTreeState: "",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: runtime,
    compiler: "",
    platform,
  };
}

function textAnswer(status: number, text: string): ApiAnswer {
  return {
    status,
    headers: {
      ...NEVER_CACHED,
      "Content-Type": "text/plain; charset=utf-8",
      "X-Content-Type-Options": "nosniff",
    },
    body: new TextEncoder().encode(text),
  };
}

function statusAnswer({ status }: StatusError): ApiAnswer {
  return { status: status.code, headers: statusHeaders(status), body: statusBody(status) };
}
