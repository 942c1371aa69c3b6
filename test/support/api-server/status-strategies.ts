import type { ApiObject } from "../../../src/api/api-object.ts";
import type { FieldError } from "../../../src/api/field-errors.ts";
import type { Ingress } from "../../../src/api/networking-objects.ts";
import type { Pod } from "../../../src/api/objects.ts";
import { ingressStatusErrors } from "../../../src/api/strategy/ingress-strategy.ts";
import { podStatusErrors } from "../../../src/api/strategy/pod-strategy.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import { validateMetadataUpdate } from "../../../src/api/validation/validate-metadata.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";

/** The kinds with a `/status` whose writes the checks of any update suffice for. */
const CHECKED_AS_UPDATES: readonly string[] = ["Node", "Namespace", "Service"];

/** The other kinds with a `/status`, and the validation of a write to it. */
const validated: Readonly<Record<string, (object: ApiObject) => FieldError[]>> = {
  Pod: (object) => podStatusErrors((object as Pod).status),
  Ingress: (object) => ingressStatusErrors(object as Ingress),
  ...Object.fromEntries(
    ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"].map(
      (kind) => [kind, () => []],
    ),
  ),
};

export function hasStatus(kind: string): boolean {
  return CHECKED_AS_UPDATES.includes(kind) || Object.hasOwn(validated, kind);
}

/** The new object with the stored spec: a write to `/status` changes nothing else. */
export function keepingSpec(next: ApiObject, old: ApiObject): ApiObject {
  const { spec: _, ...rest } = next;
  return { ...rest, ...(old.spec !== undefined && { spec: old.spec }) } as ApiObject;
}

export function statusUpdateErrors(next: ApiObject, old: ApiObject): FieldError[] {
  if (CHECKED_AS_UPDATES.includes(next.kind))
    return strategyOf(next.kind)?.validateUpdate(next, old, FeatureGates.defaults) ?? [];
  return [...validateMetadataUpdate(next.metadata, old.metadata), ...(validated[next.kind]?.(next) ?? [])];
}
