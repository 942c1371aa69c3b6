import { nearestName } from "@sluice/client/internal/config/nearest-name";
import { strategies, strategyOf } from "../api/strategy/strategies.ts";
import { groupOf } from "../api/strategy/strategy.ts";

const MAX_SHOWN_FIELDS = 20;

/**
 * The object's kind if the gateway does not use it. Undefined if the object should be read, or
 * rejected as misspelled.
 */
export function foreignKindOf(value: unknown): string | undefined {
  const { apiVersion, kind } = (value ?? {}) as Record<string, unknown>;
  if (typeof apiVersion !== "string" || apiVersion === "") return undefined;
  if (typeof kind !== "string" || kind === "") return undefined;
  const group = groupOf({ apiVersion });
  const known = strategyOf(kind);
  if (known !== undefined) return isOfOthers(group) && group !== groupOf(known) ? kind : undefined;
  const meant = strategyOf(kind.replace(/List$/, "")) ?? strategyOf(nearestName(kind, KINDS) ?? "");
  return meant !== undefined && groupOf(meant) === group ? undefined : kind;
}

const KINDS = strategies.map(({ kind }) => kind);

/**
 * A group of another project: Knative has its own Service, other projects an Ingress. `extensions`
 * and `*.k8s.io` belong to Kubernetes.
 */
function isOfOthers(group: string): boolean {
  return group.includes(".") && !group.endsWith(".k8s.io");
}

/** Counts skipped objects, and reports them in one line for each file. */
export class PassedOver {
  readonly #counts = new Map<string, Map<string, number>>();

  add(fileName: string, kind: string): void {
    const counts = this.#counts.get(fileName) ?? new Map<string, number>();
    this.#counts.set(fileName, counts.set(kind, (counts.get(kind) ?? 0) + 1));
  }

  get lines(): string[] {
    return [...this.#counts].map(([fileName, counts]) => {
      const kinds = [...counts].map(([kind, count]) => (count === 1 ? kind : `${kind} (${count})`));
      const shown = kinds.slice(0, MAX_SHOWN_KINDS).map((kind) => kind.slice(0, MAX_KIND_CHARACTERS));
      const rest = kinds.length > shown.length ? ` and ${kinds.length - shown.length} more kinds` : "";
      return `${fileName}: passed over, as not used here: ${shown.join(", ")}${rest}`;
    });
  }
}

const MAX_SHOWN_KINDS = 20;
const MAX_KIND_CHARACTERS = 80;

/**
 * Fields of valid objects that were checked only for name and type, reported in one line for each
 * kind.
 */
export class UnjudgedFields {
  readonly #fields = new Map<string, Set<string>>();

  add(kind: string, fields: readonly string[]): void {
    if (fields.length === 0) return;
    const known = this.#fields.get(kind) ?? new Set<string>();
    this.#fields.set(kind, known);
    for (const field of fields) known.add(field);
  }

  get lines(): string[] {
    return [...this.#fields].map(([kind, fields]) => {
      const shown = [...fields].slice(0, MAX_SHOWN_FIELDS);
      const rest = fields.size > shown.length ? ` and ${fields.size - shown.length} more` : "";
      return `${kind}: checked only for names and types: ${shown.join(", ")}${rest}`;
    });
  }
}
