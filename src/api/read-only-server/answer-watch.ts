import { badRequest } from "@sluice/client/internal/api/status";
import type { KubernetesObject } from "../objects.ts";
import type { ApiAnswer } from "./api-answer.ts";
import type { ObjectMatcher } from "./field-selector.ts";
import { parseCount } from "./list-page.ts";
import type { ObjectSource } from "./object-source.ts";
import { groupVersionOf, type Resource } from "./resources.ts";
import { tooOld, WatchStream } from "./watch-stream.ts";

/** kube-apiserver ends watches without a timeout after 30 to 60 minutes; clients start again. */
const DEFAULT_WATCH_TIMEOUT_SECONDS = 30 * 60;
/** Node fires a longer timer at once. */
const MAX_WATCH_TIMEOUT_SECONDS = 2_000_000;

interface WatchRequest {
  readonly resource: Resource;
  readonly source: ObjectSource;
  readonly query: URLSearchParams;
  readonly isWatched: ObjectMatcher;
  present(object: KubernetesObject): unknown;
  /** The present matching objects. */
  listMatching(): readonly KubernetesObject[];
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
  if (sendsInitialEvents) initialEvents.push(endOfInitialEvents(resource, source));
  const seconds =
    parseCount("timeoutSeconds", query.get("timeoutSeconds") || "0") || DEFAULT_WATCH_TIMEOUT_SECONDS;
  const stream = new WatchStream({
    source,
    isWatched: request.isWatched,
    present: request.present,
    initialEvents,
    startVersion: isStateWanted ? source.resourceVersion : (startVersion ?? source.resourceVersion),
    timeoutMs: Math.min(seconds, MAX_WATCH_TIMEOUT_SECONDS) * 1_000,
  });
  return {
    status: 200,
    headers: { "Cache-Control": "no-cache, private", "Content-Type": "application/json" },
    body: stream,
  };
}

/** Undefined if the client wants to start with the present state. */
function startVersionOf(query: URLSearchParams, source: ObjectSource): number | undefined {
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

function endOfInitialEvents(resource: Resource, source: ObjectSource): unknown {
  const metadata = {
    resourceVersion: String(source.resourceVersion),
    annotations: { "k8s.io/initial-events-end": "true" },
  };
  return {
    type: "BOOKMARK",
    object: { kind: resource.kind, apiVersion: groupVersionOf(resource), metadata },
  };
}
