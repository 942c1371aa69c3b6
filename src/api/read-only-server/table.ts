import { badRequest } from "@sluice/client/internal/api/status";
import type { KubernetesObject, ServedObject } from "../objects.ts";
import { cellsOf, columnsOf } from "./columns.ts";
import type { Representation } from "./negotiate.ts";

const META_GROUP = "meta.k8s.io";
/** kubectl before 1.16 knows only v1beta1; later ones offer it second. */
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
  kind: ServedObject["kind"],
  objects: readonly KubernetesObject[],
  metadata: Readonly<Record<string, unknown>>,
  options: TableOptions,
): unknown {
  return {
    kind: "Table",
    apiVersion: `${META_GROUP}/${options.form.version}`,
    metadata,
    columnDefinitions: columnsOf(kind).map(({ name, description, isWide = false }) => ({
      name,
      type: "string",
      format: name === "Name" ? "name" : "",
      description,
      priority: isWide ? 1 : 0,
    })),
    rows: objects.map((object) => ({
      cells: cellsOf(object, options.now),
      object: includedObject(object, options),
    })),
  };
}

function includedObject(object: KubernetesObject, { includeObject, form }: TableOptions): unknown {
  if (includeObject === "None") return null;
  if (includeObject === "Object") return object;
  return {
    kind: "PartialObjectMetadata",
    apiVersion: `${META_GROUP}/${form.version}`,
    metadata: object.metadata,
  };
}
