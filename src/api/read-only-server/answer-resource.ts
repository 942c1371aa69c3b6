import { badRequest, notFound } from "@sluice/client/internal/api/status";
import type { ApiObject } from "../api-object.ts";
import { type ApiAnswer, jsonAnswer, type ObjectSource } from "./api-answer.ts";
import type { Printer } from "./columns.ts";
import { isTrue, type ObjectMatcher, parseFieldSelector, parseLabelSelector } from "./label-selector.ts";
import { pageOf, parseCount } from "./list-page.ts";
import { negotiate, type Representation } from "./negotiate.ts";
import { qualifiedNameOf, type Resource } from "./resources.ts";
import { type FollowUser, tooOld, type WatchSource, WatchStream } from "./watch-stream.ts";

/** kube-apiserver ends watches without a timeout after 30 to 60 minutes; clients start again. */
const DEFAULT_WATCH_TIMEOUT_SECONDS = 30 * 60;
/** Node fires a longer timer at once. */
const MAX_WATCH_TIMEOUT_SECONDS = 2_000_000;

interface WatchRequest {
  readonly resource: Resource;
  readonly source: WatchSource;
  readonly query: URLSearchParams;
  readonly isWatched: ObjectMatcher;
  present(object: ApiObject): unknown;
  /** The matching objects at present. */
  listMatching(): readonly ApiObject[];
  readonly follow?: FollowUser | undefined;
}

/**
 * Answers `watch=true`. Without a resourceVersion, with "0" or sendInitialEvents, the watch begins
 * with ADDED events of the present state. Throws StatusError 410 for a forgotten version.
 */
export function answerWatch(request: WatchRequest): ApiAnswer {
  const { resource, source, query } = request;
  const startVersion = startVersionOf(query, source);
  const sendsInitialEvents = sendsInitialEventsOf(query);
  const isStateWanted = sendsInitialEvents ?? startVersion === undefined;
  const initialEvents: unknown[] = isStateWanted
    ? request.listMatching().map((object) => ({ type: "ADDED", object: request.present(object) }))
    : [];
  if (sendsInitialEvents)
    initialEvents.push(bookmarkOf(resource, source.resourceVersion, { "k8s.io/initial-events-end": "true" }));
  const seconds =
    parseCount("timeoutSeconds", query.get("timeoutSeconds") || "0") || DEFAULT_WATCH_TIMEOUT_SECONDS;
  const stream = new WatchStream({
    source,
    isWatched: request.isWatched,
    present: request.present,
    initialEvents,
    startVersion: isStateWanted ? source.resourceVersion : (startVersion ?? source.resourceVersion),
    bookmark: isTrue(query.get("allowWatchBookmarks"))
      ? (version) => bookmarkOf(resource, version)
      : undefined,
    follow: request.follow,
    timeoutMs: Math.min(seconds, MAX_WATCH_TIMEOUT_SECONDS) * 1_000,
  });
  return {
    status: 200,
    headers: { "Cache-Control": "no-cache, private", "Content-Type": "application/json" },
    body: stream,
  };
}

/** Undefined if the client wants to start with the present state. */
function startVersionOf(query: URLSearchParams, source: WatchSource): number | undefined {
  const text = query.get("resourceVersion") || "0";
  if (text === "0") return undefined;
  if (!/^\d{1,15}$/.test(text)) throw badRequest(`invalid resource version ${JSON.stringify(text)}`);
  const version = Number(text);
  if (version > source.resourceVersion || source.changesAfter(version) === undefined)
    throw tooOld(version, source);
  return version;
}

/** Streaming lists (KEP-3157), which client-go requests since 1.35. */
function sendsInitialEventsOf(query: URLSearchParams): boolean | undefined {
  const value = query.get("sendInitialEvents");
  if (value === null || value === "") return undefined;
  return value !== "0" && value.toLowerCase() !== "false";
}

/** A bookmark says that the client has seen every change up to a version. Tables have no row for it. */
function bookmarkOf(resource: Resource, version: number, annotations?: Record<string, string>): unknown {
  const metadata = { resourceVersion: String(version), ...(annotations && { annotations }) };
  return {
    type: "BOOKMARK",
    object: { kind: resource.kind, apiVersion: groupVersionOf(resource), metadata },
  };
}

const META_GROUP = "meta.k8s.io";
/** kubectl before 1.16 knows only v1beta1; later versions offer it second. */
export const tableForms: readonly Representation[] = ["v1", "v1beta1"].map((version) => ({
  as: "Table",
  group: META_GROUP,
  version,
}));

interface TableOptions {
  readonly form: Representation;
  readonly includeObject: "None" | "Metadata" | "Object";
  readonly now: Date;
}

/** The query's `includeObject`. Throws StatusError 400 for an unknown value. */
export function includeObjectOf(query: URLSearchParams): TableOptions["includeObject"] {
  const value = query.get("includeObject") || "Metadata";
  if (value === "None" || value === "Metadata" || value === "Object") return value;
  throw badRequest(`unrecognized includeObject value: "${value}"`);
}

/**
 * kubectl prints this: columns that the server names and fills (meta.k8s.io Table). `metadata`
 * belongs to the list or object.
 */
export function tableOf(
  { columns, cells }: Printer,
  objects: readonly ApiObject[],
  metadata: Readonly<Record<string, unknown>>,
  options: TableOptions,
): unknown {
  return {
    kind: "Table",
    apiVersion: `${META_GROUP}/${options.form.version}`,
    metadata,
    columnDefinitions: columns.map(({ name, description, isWide = false }) => ({
      name,
      type: "string",
      format: name === "Name" ? "name" : "",
      description,
      priority: isWide ? 1 : 0,
    })),
    rows: objects.map((object) => ({
      cells: cells(object, options.now),
      object: includedObject(object, options),
    })),
  };
}

function includedObject(object: ApiObject, { includeObject, form }: TableOptions): unknown {
  if (includeObject === "None") return null;
  if (includeObject === "Object") return object;
  return {
    kind: "PartialObjectMetadata",
    apiVersion: `${META_GROUP}/${form.version}`,
    metadata: object.metadata,
  };
}

/** A parsed path below `/api/v1` or `/apis/GROUP/VERSION`. */
export interface ResourcePath {
  readonly resource: Resource;
  /** Undefined for every namespace, or a cluster-scoped resource. */
  readonly namespace: string | undefined;
  /** Undefined for the whole collection. */
  readonly name: string | undefined;
}

interface ReadContext {
  readonly source: ObjectSource;
  readonly query: URLSearchParams;
  readonly accept: string;
  readonly now: () => Date;
}

/** Answers get, list and watch of one resource. Throws StatusError. */
export function answerResource(path: ResourcePath, context: ReadContext): ApiAnswer {
  const { query, source } = context;
  const present = presenterOf(path.resource, context);
  // A named object is only read, as in kube-apiserver; `watch` would exceed the verb that was judged.
  if (path.name !== undefined) return jsonAnswer(present.one(requireObject(path, source)));
  if (isTrue(query.get("watch"))) {
    const isWatched = matcherOf(path, query);
    return answerWatch({
      resource: path.resource,
      source,
      query,
      isWatched,
      present: (object) => present.one(object),
      listMatching: () => source.list(path.resource.kind, path.namespace).filter(isWatched),
    });
  }
  const matching = source.list(path.resource.kind, path.namespace).filter(matcherOf(path, query));
  const { objects, metadata } = pageOf(matching, source.resourceVersion, query);
  return jsonAnswer(present.list(objects, metadata));
}

function requireObject(
  { resource, namespace = "", name = "" }: ResourcePath,
  source: ObjectSource,
): ApiObject {
  const object = source.get(resource.kind, namespace, name);
  if (object === undefined) throw notFound(qualifiedNameOf(resource), name);
  return object;
}

/** Matches objects below the path that both selectors of the query match. */
export function matcherOf(
  { resource, namespace, name }: ResourcePath,
  query: URLSearchParams,
): ObjectMatcher {
  const hasLabels = parseLabelSelector(query.get("labelSelector") ?? "");
  const hasFields = parseFieldSelector(query.get("fieldSelector") ?? "", resource);
  return (object) =>
    object.kind === resource.kind &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (name === undefined || object.metadata.name === name) &&
    hasLabels(object.metadata.labels ?? {}) &&
    hasFields(object);
}

interface Presenter {
  one(object: ApiObject): unknown;
  list(objects: readonly ApiObject[], metadata: Readonly<Record<string, unknown>>): unknown;
}

/** Formats objects plainly or as Tables, by the client's Accept. */
export function presenterOf(
  resource: Resource,
  { accept, query, now }: Omit<ReadContext, "source">,
): Presenter {
  const { kind, printer } = resource;
  const form = negotiate(accept, tableForms);
  if (form === undefined) {
    return {
      one: (object) => object,
      list: (objects, metadata) => ({
        kind: `${kind}List`,
        apiVersion: groupVersionOf(resource),
        metadata,
        // The list already names its items' kind.
        items: objects.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item),
      }),
    };
  }
  const includeObject = includeObjectOf(query);
  return {
    one: (object) => {
      const { resourceVersion } = object.metadata;
      return tableOf(printer, [object], { resourceVersion }, { form, includeObject, now: now() });
    },
    list: (objects, metadata) => tableOf(printer, objects, metadata, { form, includeObject, now: now() }),
  };
}

/** `v1`, or `networking.k8s.io/v1`. */
function groupVersionOf({ group, version }: Pick<Resource, "group" | "version">): string {
  return group === "" ? version : `${group}/${version}`;
}
