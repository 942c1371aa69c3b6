import { isRecord } from "./json-patch.ts";

/**
 * The lists that Kubernetes merges by a key instead of replacing them (`patchMergeKey` in
 * k8s.io/api), by field name.
 */
const MERGE_KEYS: Readonly<Record<string, readonly string[]>> = {
  containers: ["name"],
  initContainers: ["name"],
  ephemeralContainers: ["name"],
  env: ["name"],
  volumes: ["name"],
  volumeMounts: ["mountPath"],
  volumeDevices: ["devicePath"],
  imagePullSecrets: ["name"],
  hostAliases: ["ip"],
  conditions: ["type"],
  addresses: ["type"],
  ownerReferences: ["uid"],
  secrets: ["name"],
  /** The ports of a container, or of a Service. */
  ports: ["containerPort", "port"],
};
/** Lists of plain values that are merged as sets. */
const UNITED = ["finalizers", "podCIDRs"];

type Fields = Record<string, unknown>;

/**
 * Applies Kubernetes' strategic merge patch, with `$patch`, `$retainKeys`,
 * `$deleteFromPrimitiveList` and `$setElementOrder`.
 */
export function strategicMerge(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return patch;
  const { $patch, $retainKeys, ...fields } = patch;
  if ($patch === "replace") return fields;
  const result: Fields = isRecord(target) ? { ...target } : {};
  if (Array.isArray($retainKeys)) {
    for (const key of Object.keys(result)) if (!$retainKeys.includes(key)) delete result[key];
  }
  for (const [key, value] of Object.entries(fields)) {
    const [, directive, field = ""] = /^(\$deleteFromPrimitiveList|\$setElementOrder)\/(.*)$/.exec(key) ?? [];
    if (directive === "$deleteFromPrimitiveList") {
      const unwanted = value as unknown[];
      result[field] = listOf(result[field]).filter((item) => !unwanted.includes(item));
    } else if (directive === undefined) mergeField(result, key, value);
  }
  for (const [key, order] of Object.entries(fields)) {
    if (key.startsWith("$setElementOrder/"))
      reorder(result, key.slice("$setElementOrder/".length), order as unknown[]);
  }
  return result;
}

function mergeField(result: Fields, key: string, value: unknown): void {
  if (value === null) delete result[key];
  else if (!Array.isArray(value)) result[key] = strategicMerge(result[key], value);
  else if (UNITED.includes(key)) result[key] = [...new Set([...listOf(result[key]), ...value])];
  else result[key] = mergeList(listOf(result[key]), value, key);
}

function mergeList(target: readonly unknown[], patch: readonly unknown[], field: string): unknown[] {
  const mergeKey = mergeKeyOf(field, patch);
  if (mergeKey === undefined) return patch.map((item) => strategicMerge(undefined, item));
  if (patch.some((item) => isRecord(item) && item.$patch === "replace")) {
    return patch.filter((item) => !(isRecord(item) && item.$patch === "replace"));
  }
  const result = [...target];
  for (const item of patch as readonly Fields[]) {
    const index = result.findIndex((candidate) => (candidate as Fields)[mergeKey] === item[mergeKey]);
    if (item.$patch === "delete") {
      if (index >= 0) result.splice(index, 1);
    } else if (index >= 0) result[index] = strategicMerge(result[index], item);
    else result.push(strategicMerge(undefined, item));
  }
  return result;
}

function reorder(result: Fields, field: string, order: readonly unknown[]): void {
  const list = result[field];
  if (!Array.isArray(list)) return;
  const mergeKey = mergeKeyOf(field, order);
  const keyOf = (item: unknown) => (mergeKey === undefined ? item : (item as Fields)[mergeKey]);
  const places = order.map(keyOf);
  const placeOf = (item: unknown) => {
    const place = places.indexOf(keyOf(item));
    return place < 0 ? places.length : place;
  };
  result[field] = list.toSorted((a, b) => placeOf(a) - placeOf(b));
}

function mergeKeyOf(field: string, items: readonly unknown[]): string | undefined {
  return MERGE_KEYS[field]?.find((key) =>
    items.every((item) => isRecord(item) && (key in item || "$patch" in item)),
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
