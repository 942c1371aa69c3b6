import {
  fieldTerms,
  int64Of,
  isTrue,
  parseLabelSelector,
} from "../../api/read-only-server/label-selector.ts";
import type { UserInfo } from "../user-info.ts";
import type { Attributes } from "./authorizer.ts";

interface RequestLine {
  readonly method: string;
  /** Without query, percent-encoded as received. */
  readonly path: string;
  readonly query: URLSearchParams;
}

const VERB_OF_METHOD: ReadonlyMap<string, string> = new Map([
  ["POST", "create"],
  ["GET", "get"],
  ["HEAD", "get"],
  ["PUT", "update"],
  ["PATCH", "patch"],
  ["DELETE", "delete"],
]);
/** Deprecated path prefixes below a version that set the verb, whatever the method. */
const PATH_VERBS: readonly string[] = ["watch", "proxy"];
const NAMESPACE_SUBRESOURCES: readonly string[] = ["status", "finalize"];

/**
 * Derives a request's attributes as kube-apiserver's RequestInfo does: a resource with a verb, or a
 * bare path. A path of only `watch` or `proxy`, a 500 there, counts as a resource with that name.
 */
export function requestAttributes(user: UserInfo, { method, path: rawPath, query }: RequestLine): Attributes {
  const path = decoded(rawPath);
  const [root = "", ...rest] = segmentsOf(rawPath);
  const [apiGroup = "", apiVersion = "", ...below] = root === "api" ? ["", ...rest] : rest;
  if ((root !== "api" && root !== "apis") || below.length === 0) {
    const none = { namespace: "", apiGroup: "", apiVersion: "", resource: "", subresource: "", name: "" };
    return { user, ...none, isResourceRequest: false, verb: method.toLowerCase(), path };
  }
  const hasPathVerb = PATH_VERBS.includes(below[0] as string) && below.length > 1;
  const methodVerb = hasPathVerb ? (below[0] as string) : (VERB_OF_METHOD.get(method) ?? "");
  const { namespace, parts } = inNamespace(hasPathVerb ? below.slice(1) : below);
  const [resource = "", partName = "", third = ""] = parts;
  // The rest of the path belongs to the proxied object.
  const subresource = methodVerb === "proxy" ? "" : third;
  const { verb, name } = withoutName(methodVerb, partName, query);
  return {
    user,
    isResourceRequest: true,
    path,
    apiGroup,
    apiVersion,
    namespace,
    resource,
    subresource,
    verb,
    name,
  };
}

/** For authorizers, a Namespace is in the namespace of its own name. */
function inNamespace(parts: readonly string[]): { namespace: string; parts: readonly string[] } {
  const [first, namespace = "", third] = parts;
  if (first !== "namespaces") return { namespace: "", parts };
  const isOwn = third === undefined || NAMESPACE_SUBRESOURCES.includes(third);
  return { namespace, parts: isOwn ? parts : parts.slice(2) };
}

/**
 * A request without an object's name becomes a list, watch or deletecollection; a field selector of
 * a list or watch may still name the object.
 */
function withoutName(verb: string, name: string, query: URLSearchParams): { verb: string; name: string } {
  if (name !== "" || (verb !== "get" && verb !== "delete")) return { verb, name };
  if (verb === "delete") return { verb: "deletecollection", name };
  return { verb: isTrue(query.get("watch")) ? "watch" : "list", name: nameOfFieldSelector(query) };
}

const INTEGER_OPTIONS = ["limit", "timeoutSeconds"];

/**
 * The name that a field selector requires; none if a list option is malformed, or no object can
 * have that name.
 */
function nameOfFieldSelector(query: URLSearchParams): string {
  const selector = query.get("fieldSelector") ?? "";
  if (!selector.includes("metadata.name")) return "";
  try {
    parseLabelSelector(query.get("labelSelector") ?? "");
    const exact = fieldTerms(selector).find(
      ({ field, operator }) => field === "metadata.name" && operator !== "!=",
    );
    const areIntegers = INTEGER_OPTIONS.every((option) => {
      const value = query.get(option);
      return value === null || int64Of(value) !== undefined;
    });
    const name = exact?.value ?? "";
    return areIntegers && !/^\.{1,2}$|[/%]/.test(name) ? name : "";
  } catch {
    return "";
  }
}

/** Splits a path as Go does: without outer slashes, with empty segments in between. */
function segmentsOf(path: string): string[] {
  const segments = path.split(/\/|%2f/i);
  const first = segments.findIndex((segment) => segment !== "");
  if (first === -1) return [];
  return segments.slice(first, segments.findLastIndex((segment) => segment !== "") + 1).map(decoded);
}

/**
 * Keeps invalid UTF-8 escaped: it belongs to a path behind a proxy subresource, and names no
 * object.
 */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
