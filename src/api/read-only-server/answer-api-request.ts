import { methodNotAllowed, StatusError, unknownPath } from "@sluice/client/internal/api/status";
import { answerResource, type ResourcePath } from "./answer-resource.ts";
import { type ApiAnswer, type ApiRequest, jsonAnswer, statusAnswer, textAnswer } from "./api-answer.ts";
import { answerCoreResources, answerCoreVersions, answerGroups } from "./discovery.ts";
import { answerGroupPath, apiGroups } from "./group-discovery.ts";
import type { ObjectSource } from "./object-source.ts";
import { qualifiedNameOf, resourcesOf } from "./resources.ts";
import { reviewAt } from "./review-resources.ts";
import { type ServerVersion, versionInfo } from "./version-info.ts";

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
  const fixed = fixedAnswers[path];
  if (fixed && Object.hasOwn(fixedAnswers, path)) {
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
