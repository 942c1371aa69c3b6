import { badRequest } from "../../../packages/client/src/api/status.ts";

type Json = unknown;
interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: Json;
}

/** RFC 7396. */
export function mergePatch(target: Json, patch: Json): Json {
  if (!isRecord(patch)) return patch;
  const result: Record<string, Json> = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** Applies a patch by RFC 6902. Throws StatusError 400 or 422 as the API server does. */
export function jsonPatch(target: Json, operations: unknown): Json {
  if (!Array.isArray(operations)) throw badRequest("error decoding patch: a list of operations is expected");
  return (operations as Operation[]).reduce(apply, structuredClone(target));
}

function apply(document: Json, { op, path, from, value }: Operation): Json {
  switch (op) {
    case "add":
      return edit(document, path, (parent, key) => add(parent, key, value));
    case "replace":
      return edit(document, path, (parent, key) => {
        requirePresent(parent, key, path);
        set(parent, key, value);
      });
    case "remove":
      return edit(document, path, (parent, key) => {
        requirePresent(parent, key, path);
        remove(parent, key);
      });
    case "test":
      if (JSON.stringify(valueAt(document, path)) !== JSON.stringify(value)) {
        throw badRequest(`testing value ${path} failed: test failed`);
      }
      return document;
    case "copy":
      return apply(document, { op: "add", path, value: structuredClone(valueAt(document, from ?? "")) });
    case "move": {
      const moved = valueAt(document, from ?? "");
      return apply(apply(document, { op: "remove", path: from ?? "" }), { op: "add", path, value: moved });
    }
    default:
      throw badRequest(`unknown operation ${JSON.stringify(op)}`);
  }
}

function edit(document: Json, path: string, change: (parent: Json, key: string) => void): Json {
  const keys = keysOf(path);
  const last = keys.pop();
  if (last === undefined) throw badRequest("a patch of the whole document is not supported");
  const parent = keys.reduce((value: Json, key) => child(value, key, path), document);
  change(parent, last);
  return document;
}

function valueAt(document: Json, path: string): Json {
  return keysOf(path).reduce((value: Json, key) => child(value, key, path), document);
}

function child(value: Json, key: string, path: string): Json {
  requirePresent(value, key, path);
  return (value as Record<string, Json>)[key];
}

function requirePresent(parent: Json, key: string, path: string): void {
  if (typeof parent === "object" && parent !== null && Object.hasOwn(parent, key)) return;
  throw badRequest(`operation does not apply: doc is missing path: ${path}: missing value`);
}

function add(parent: Json, key: string, value: Json): void {
  if (!Array.isArray(parent)) set(parent, key, value);
  else parent.splice(key === "-" ? parent.length : Number(key), 0, value);
}

function set(parent: Json, key: string, value: Json): void {
  (parent as Record<string, Json>)[key] = value;
}

function remove(parent: Json, key: string): void {
  if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else delete (parent as Record<string, Json>)[key];
}

function keysOf(path: string): string[] {
  return path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
