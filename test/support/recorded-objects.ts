import { readFileSync } from "node:fs";
import path from "node:path";
import type { ObjectKind } from "../../src/api/objects.ts";
import { collectionPath } from "../../src/kubernetes/live-object.ts";
import type { ScriptedApi } from "./scripted-api.ts";

const FOLDER = path.join(import.meta.dirname, "../fixtures/kubernetes-1.37.2");

/** Each kind that Sluice reads, as a real API server answers it; see the README of the fixtures. */
export const RECORDED_KINDS = [
  "Pod",
  "Node",
  "Namespace",
  "Service",
  "EndpointSlice",
  "Secret",
  "Ingress",
  "IngressClass",
  "Role",
  "ClusterRole",
  "RoleBinding",
  "ClusterRoleBinding",
  "Lease",
] as const satisfies readonly ObjectKind[];

export interface RecordedList {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly RecordedObject[];
}

export interface RecordedObject {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly [field: string]: unknown;
}

export interface RecordedEvent {
  readonly type: string;
  readonly object: RecordedObject;
}

/** The parsed lines of a fixture file. */
export function recordedLines(name: string): readonly unknown[] {
  const text = readFileSync(path.join(FOLDER, `${name}.jsonl`), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as unknown);
}

export function recorded(kind: ObjectKind): {
  readonly list: RecordedList;
  readonly events: readonly RecordedEvent[];
} {
  const [list, ...events] = recordedLines(kind);
  return { list: list as RecordedList, events: events as RecordedEvent[] };
}

/** A list's objects as `kubectl get -o json` writes them: each states its kind. */
export function recordedObjects(kind: ObjectKind): readonly RecordedObject[] {
  const { apiVersion, items } = recorded(kind).list;
  return items.map((item) => ({ apiVersion, kind, ...item }));
}

/** Makes the scripted API list all of them. */
export function listRecorded(api: ScriptedApi): void {
  for (const kind of RECORDED_KINDS) api.answers.set(collectionPath(kind), recorded(kind).list);
}
