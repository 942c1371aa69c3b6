import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  badRequest,
  notFound,
  StatusError,
  unsupportedMediaType,
} from "../../../packages/client/src/api/status.ts";
import { withDefaultIngressClass } from "../../../src/api/admission/default-ingress-class.ts";
import type { ApiObject } from "../../../src/api/api-object.ts";
import { invalidObject } from "../../../src/api/field-errors.ts";
import type { Ingress, IngressClass } from "../../../src/api/networking-objects.ts";
import { decodeObject } from "../../../src/api/strategy/decode-object.ts";
import { prepareUpdate } from "../../../src/api/strategy/read-object.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import type { Strategy } from "../../../src/api/strategy/strategy.ts";
import type { FeatureGates } from "../../../src/config/feature-gates.ts";
import { isRecord, jsonPatch, mergePatch } from "./json-patch.ts";
import type { ObjectStore } from "./object-store.ts";
import { type PreparedWrite, prepareCreate, prepareStatusUpdate } from "./prepare-write.ts";
import {
  groupVersionOf,
  qualifiedName,
  type Resource,
  type ResourcePath,
  resourceOfKind,
} from "./resources.ts";
import { strategicMerge } from "./strategic-merge.ts";
import { inVersionOf } from "./versions.ts";

export interface WriteContext {
  readonly store: ObjectStore;
  readonly gates: FeatureGates;
  readonly isDryRun: boolean;
}

export interface Written {
  readonly object: ApiObject;
  readonly warnings: readonly string[];
  readonly isCreated: boolean;
}

const PATCH_TYPES = [
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
];
const NAMESPACE = resourceOfKind("Namespace");

/** Throws StatusError 400, 404, 409 or 422, as the API server does. */
export function create(path: ResourcePath, body: unknown, context: WriteContext): Written {
  const { store, gates, isDryRun } = context;
  const decoded = decode(path, body);
  const namespace = decoded.metadata.namespace ?? "";
  if (path.resource.isNamespaced && store.get(NAMESPACE, "", namespace) === undefined) {
    throw notFound("namespaces", namespace);
  }
  const named = admitted(withName(decoded), store);
  const { object, warnings } = checked(path, named, (strategy) => prepareCreate(strategy, named, gates));
  if (store.get(path.resource, namespace, object.metadata.name) !== undefined) {
    throw conflictError("AlreadyExists", path.resource, object.metadata.name, "already exists");
  }
  const stamped = stampedNew(object);
  return { object: isDryRun ? stamped : store.put(path.resource, stamped), warnings, isCreated: true };
}

/**
 * PUT of the object or of its `/status`. A resourceVersion must be the current one; without it the
 * last writer wins.
 */
export function update(path: ResourcePath, body: unknown, context: WriteContext): Written {
  const old = require(path, context.store);
  return store(path, decode(path, body), old, context);
}

export function patch(
  path: ResourcePath,
  contentType: string,
  body: unknown,
  context: WriteContext,
): Written {
  const old = require(path, context.store);
  return store(path, decode(path, patched(inVersionOf(path.resource, old), contentType, body)), old, context);
}

/** The object if finalizers keep it, or undefined if it is gone. */
export function remove(
  path: ResourcePath,
  options: unknown,
  { store, isDryRun }: WriteContext,
): ApiObject | undefined {
  const old = require(path, store);
  const { uid, resourceVersion } = preconditionsOf(options);
  const { metadata } = old;
  if (
    (uid ?? metadata.uid) !== metadata.uid ||
    (resourceVersion ?? metadata.resourceVersion) !== metadata.resourceVersion
  ) {
    throw conflictError("Conflict", path.resource, metadata.name, "the precondition does not hold");
  }
  if (isDryRun) return undefined;
  if (Array.isArray(metadata.finalizers) && metadata.finalizers.length > 0) {
    const deletionTimestamp = metadata.deletionTimestamp ?? now();
    return store.put(path.resource, { ...old, metadata: { ...metadata, deletionTimestamp } });
  }
  store.delete(path.resource, metadata.namespace ?? "", metadata.name);
  return undefined;
}

function store(path: ResourcePath, given: ApiObject, old: ApiObject, context: WriteContext): Written {
  const { gates, isDryRun } = context;
  const { resourceVersion } = given.metadata;
  if (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion) {
    const sentence =
      "the object has been modified; please apply your changes to the latest version and try again";
    throw conflictError("Conflict", path.resource, old.metadata.name, sentence);
  }
  const { uid, creationTimestamp } = old.metadata;
  const serverFields = {
    uid: given.metadata.uid ?? uid,
    creationTimestamp,
    resourceVersion: old.metadata.resourceVersion,
  };
  const next = { ...given, metadata: { ...given.metadata, ...serverFields } } as ApiObject;
  const { object, warnings } = checked(path, next, (strategy) => {
    if (path.subresource === undefined) return prepareUpdate(strategy, next, old, gates);
    const prepared = prepareStatusUpdate(strategy, next, old);
    if (prepared === undefined) throw notFound(qualifiedName(path.resource), old.metadata.name);
    return prepared;
  });
  // A write that changes nothing is not stored.
  if (isDryRun || isDeepStrictEqual(plain(object), plain(old))) return { object, warnings, isCreated: false };
  const { metadata } = object;
  const isFinalized =
    metadata.deletionTimestamp !== undefined && !(metadata.finalizers as unknown[] | undefined)?.length;
  if (isFinalized) {
    context.store.delete(path.resource, metadata.namespace ?? "", metadata.name);
    return { object, warnings, isCreated: false };
  }
  return { object: context.store.put(path.resource, object), warnings, isCreated: false };
}

/** Kinds without a strategy are stored unchanged. */
function checked(
  { resource }: ResourcePath,
  object: ApiObject,
  prepare: (strategy: Strategy) => PreparedWrite,
): { object: ApiObject; warnings: readonly string[] } {
  const strategy = strategyOf(resource.kind);
  if (strategy === undefined) return { object, warnings: [] };
  const { object: prepared, errors, warnings } = prepare(strategy);
  if (errors.length > 0) throw invalidObject(resource.kind, object.metadata.name, errors, resource.group);
  return { object: prepared, warnings };
}

function decode({ resource, namespace, name }: ResourcePath, body: unknown): ApiObject {
  if (!isRecord(body)) throw badRequest("the object provided is unrecognized (must be of type Object)");
  const whole = { apiVersion: groupVersionOf(resource), kind: resource.kind, ...body };
  let object = whole as unknown as ApiObject;
  if (strategyOf(resource.kind) !== undefined) {
    const decoding = decodeObject(whole);
    if (!decoding.isDecoded) throw badRequest(decoding.problem.message);
    object = decoding.object;
  }
  const metadata = { ...object.metadata };
  if (name !== undefined && metadata.name !== undefined && metadata.name !== name) {
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  if (namespace !== undefined && (metadata.namespace ?? namespace) !== namespace) {
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
  }
  return {
    ...object,
    metadata: {
      ...metadata,
      name: metadata.name ?? name ?? "",
      ...(namespace !== undefined && { namespace }),
    },
  };
}

function patched(old: ApiObject, contentType: string, body: unknown): unknown {
  switch (contentType.split(";")[0]) {
    case "application/json-patch+json":
      return jsonPatch(old, body);
    case "application/merge-patch+json":
      return mergePatch(old, body);
    case "application/strategic-merge-patch+json":
      return strategicMerge(old, body);
    default:
      // Server-side apply is not implemented: kubectl applies on the client's side by default.
      throw unsupportedMediaType(PATCH_TYPES);
  }
}

function require({ resource, namespace = "", name = "" }: ResourcePath, store: ObjectStore): ApiObject {
  const found = store.get(resource, namespace, name);
  if (found === undefined) throw notFound(qualifiedName(resource), name);
  // Objects that a test put there itself get their defaults now, like those that an API server
  // reads from its storage.
  return strategyOf(resource.kind)?.withDefaults(found) ?? found;
}

/** The admission plugins that change objects: an Ingress gets the default class. */
function admitted(object: ApiObject, store: ObjectStore): ApiObject {
  if (object.kind !== "Ingress") return object;
  const classes = store.list(resourceOfKind("IngressClass")) as unknown as readonly IngressClass[];
  return withDefaultIngressClass(object as unknown as Ingress, classes);
}

function withName(object: ApiObject): ApiObject {
  const { name, generateName } = object.metadata;
  if (name || typeof generateName !== "string") return object;
  return { ...object, metadata: { ...object.metadata, name: generateName + randomUUID().slice(-5) } };
}

/** The fields that the server writes into the metadata of a new object. */
export function stampedNew(object: ApiObject): ApiObject {
  const { resourceVersion: _, ...metadata } = object.metadata;
  const generation = "spec" in object && object.kind !== "Service" ? { generation: 1 } : {};
  return {
    ...object,
    metadata: {
      ...metadata,
      uid: metadata.uid ?? randomUUID(),
      creationTimestamp: now(),
      ...generation,
    } as ApiObject["metadata"],
  };
}

function preconditionsOf(options: unknown): { uid?: unknown; resourceVersion?: unknown } {
  return isRecord(options) && isRecord(options.preconditions) ? options.preconditions : {};
}

function plain(object: ApiObject): unknown {
  return JSON.parse(JSON.stringify(object));
}

function now(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}

function conflictError(
  reason: "AlreadyExists" | "Conflict",
  resource: Resource,
  name: string,
  why: string,
): StatusError {
  const subject = `${qualifiedName(resource)} ${JSON.stringify(name)}`;
  return new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message:
      reason === "AlreadyExists"
        ? `${subject} ${why}`
        : `Operation cannot be fulfilled on ${subject}: ${why}`,
    reason,
    details: { name, ...(resource.group !== "" && { group: resource.group }), kind: resource.plural },
    code: 409,
  });
}
