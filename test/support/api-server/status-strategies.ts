import type { ApiObject } from "../../../src/api/api-object.ts";
import type { FieldError } from "../../../src/api/field-errors.ts";
import type { Ingress, Service } from "../../../src/api/networking-objects.ts";
import type { Namespace, Node, Pod } from "../../../src/api/objects.ts";
import { ingressStatusErrors } from "../../../src/api/strategy/ingress-strategy.ts";
import { podStatusErrors } from "../../../src/api/strategy/pod-strategy.ts";
import { validateNamespace, validateNode } from "../../../src/api/strategy/strategies.ts";
import { validateMetadataUpdate } from "../../../src/api/validation/validate-metadata.ts";
import { validateService } from "../../../src/api/validation/validate-service.ts";

/** The kinds with a `/status`, and the validation of a write to it. */
const validated: Readonly<Record<string, (object: ApiObject) => FieldError[]>> = {
  Node: (object) => validateNode(object as Node),
  Namespace: (object) => validateNamespace(object as Namespace),
  Service: (object) => validateService(object as Service, { allowsRelaxedServiceNames: true }),
  Pod: (object) => podStatusErrors((object as Pod).status),
  Ingress: (object) => ingressStatusErrors(object as Ingress),
  ...Object.fromEntries(
    ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob"].map(
      (kind) => [kind, () => []],
    ),
  ),
};

export function hasStatus(kind: string): boolean {
  return Object.hasOwn(validated, kind);
}

/** The new object with the stored spec: a write to `/status` changes nothing else. */
export function keepingSpec(next: ApiObject, old: ApiObject): ApiObject {
  const { spec: _, ...rest } = next;
  return { ...rest, ...(old.spec !== undefined && { spec: old.spec }) } as ApiObject;
}

export function statusUpdateErrors(next: ApiObject, old: ApiObject): FieldError[] {
  return [...validateMetadataUpdate(next.metadata, old.metadata), ...(validated[next.kind]?.(next) ?? [])];
}
