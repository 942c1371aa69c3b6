import type { UserInfo } from "../authn/authenticator.ts";
import type { Attributes } from "./authorizer.ts";

export interface RequestLine {
  readonly method: string;
  /** Without query, percent-encoded as it came. */
  readonly path: string;
  readonly query: URLSearchParams;
}

const verbOfMethod: Readonly<Record<string, string>> = {
  POST: "create",
  PUT: "update",
  PATCH: "patch",
  DELETE: "delete",
};

/** What kube-apiserver would ask its authorizer about this request (its RequestInfo): a resource with a verb, or a bare path. */
export function requestAttributes(user: UserInfo, request: RequestLine): Attributes {
  const { method, path } = request;
  const [parts, pathVerb] = resourceParts(path);
  const none = { namespace: "", apiGroup: "", apiVersion: "", resource: "", subresource: "", name: "" };
  if (parts === undefined) {
    return { user, ...none, isResourceRequest: false, verb: method.toLowerCase(), path };
  }
  const name = parts.name === "" ? nameOfFieldSelector(request.query) : parts.name;
  return {
    user,
    ...parts,
    name,
    isResourceRequest: true,
    verb: pathVerb ?? verbOf(request, parts.name),
    path,
  };
}

interface ResourceParts {
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  readonly subresource: string;
}

/** RequestInfo's verbs that are the first segment below a version, deprecated and still served, whatever the method. */
const PATH_VERBS: readonly string[] = ["watch", "proxy"];

/**
 * Undefined for a path without a resource, such as discovery and health. A path with a verb has it. A bare `watch` or `proxy`, a 500
 * of kube-apiserver, is a resource of that name.
 */
function resourceParts(path: string): [parts: ResourceParts | undefined, pathVerb: string | undefined] {
  const [root, ...rest] = decodedSegments(path);
  const [apiGroup, apiVersion, ...below] = root === "api" ? ["", ...rest] : rest;
  if ((root !== "api" && root !== "apis") || apiGroup === undefined || apiVersion === undefined)
    return [undefined, undefined];
  const [verb = "", ...about] = below;
  if (!PATH_VERBS.includes(verb) || about.length === 0)
    return [partsOf(apiGroup, apiVersion, below), undefined];
  const parts = partsOf(apiGroup, apiVersion, about);
  // What follows a proxied object's name is the object's own path.
  return [verb === "proxy" && parts !== undefined ? { ...parts, subresource: "" } : parts, verb];
}

function partsOf(
  apiGroup: string,
  apiVersion: string,
  [first, second, third, ...others]: string[],
): ResourceParts | undefined {
  if (first === undefined) return undefined;
  const isInNamespace = first === "namespaces" && third !== undefined && !isNamespaceSubresource(third);
  if (isInNamespace) {
    const [name = "", subresource = ""] = others;
    return { apiGroup, apiVersion, namespace: second ?? "", resource: third, name, subresource };
  }
  // A Namespace lies, for its authorizer, in itself.
  const namespace = first === "namespaces" ? (second ?? "") : "";
  return { apiGroup, apiVersion, namespace, resource: first, name: second ?? "", subresource: third ?? "" };
}

function isNamespaceSubresource(segment: string): boolean {
  return segment === "status" || segment === "finalize";
}

function decodedSegments(path: string): string[] {
  return path
    .split("/")
    .filter((segment) => segment !== "")
    .map(decoded);
}

/** What is no UTF-8 stays as it is: it belongs to a path behind a proxy subresource, and names no object. */
function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function verbOf({ method, query }: RequestLine, name: string): string {
  if (method === "GET" || method === "HEAD") {
    const watch = query.get("watch");
    if (watch !== null && watch !== "0" && watch.toLowerCase() !== "false") return "watch";
    return name === "" ? "list" : "get";
  }
  if (method === "DELETE" && name === "") return "deletecollection";
  return verbOfMethod[method] ?? "";
}

/** A list or watch of one object by its name counts as a request for that name. */
function nameOfFieldSelector(query: URLSearchParams): string {
  return /^metadata\.name==?([^,=\\]+)$/.exec(query.get("fieldSelector") ?? "")?.[1] ?? "";
}
