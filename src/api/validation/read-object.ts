import type { FieldPath } from "../../config/yaml-documents.ts";
import { type FieldError, fieldErrorText } from "../field-errors.ts";
import { goQuote } from "../go-json.ts";
import type { KubernetesObject } from "../objects.ts";
import { RBAC_API_VERSION } from "../rbac-objects.ts";
import { namespaceShape, nodeShape, podShape } from "./object-shapes.ts";
import { clusterRoleBindingShape, clusterRoleShape, roleBindingShape, roleShape } from "./rbac-shapes.ts";
import { type Shape, shapeProblem } from "./shape.ts";
import { validateNamespace, validateNode } from "./validate-node.ts";
import { validatePod } from "./validate-pod.ts";
import {
  validateClusterRole,
  validateClusterRoleBinding,
  validateRole,
  validateRoleBinding,
} from "./validate-rbac.ts";

export const DEFAULT_NAMESPACE = "default";

/** Something wrong with an object, with the API server's whole sentence. */
export interface ObjectProblem {
  readonly path: FieldPath;
  readonly message: string;
}

export type ObjectReading =
  | { readonly isValid: true; readonly object: KubernetesObject }
  | { readonly isValid: false; readonly problems: readonly ObjectProblem[] };

interface KindRules {
  /** Absent: "v1". */
  readonly apiVersion?: string;
  readonly shape: Shape;
  readonly isNamespaced: boolean;
  validate(object: KubernetesObject): FieldError[];
}

const rulesOfKind: Readonly<Record<string, KindRules>> = {
  Pod: { shape: podShape, isNamespaced: true, validate: (object) => validatePod(object as never) },
  Node: { shape: nodeShape, isNamespaced: false, validate: (object) => validateNode(object as never) },
  Namespace: {
    shape: namespaceShape,
    isNamespaced: false,
    validate: (object) => validateNamespace(object as never),
  },
  Role: {
    apiVersion: RBAC_API_VERSION,
    shape: roleShape,
    isNamespaced: true,
    validate: (object) => validateRole(object as never),
  },
  ClusterRole: {
    apiVersion: RBAC_API_VERSION,
    shape: clusterRoleShape,
    isNamespaced: false,
    validate: (object) => validateClusterRole(object as never),
  },
  RoleBinding: {
    apiVersion: RBAC_API_VERSION,
    shape: roleBindingShape,
    isNamespaced: true,
    validate: (object) => validateRoleBinding(object as never),
  },
  ClusterRoleBinding: {
    apiVersion: RBAC_API_VERSION,
    shape: clusterRoleBindingShape,
    isNamespaced: false,
    validate: (object) => validateClusterRoleBinding(object as never),
  },
};

/** Reads one object from untrusted data: kind, types, the default namespace, then every rule. The result needs no further checks. */
export function readObject(value: unknown): ObjectReading {
  if (!isRecord(value))
    return refused([], "a Kubernetes object is expected: a mapping with apiVersion and kind");
  const { apiVersion, kind } = value;
  if (typeof kind !== "string" || kind === "") return refused(["kind"], "Object 'Kind' is missing");
  if (typeof apiVersion !== "string" || apiVersion === "") {
    return refused(["apiVersion"], "Object 'apiVersion' is missing");
  }
  const found = Object.hasOwn(rulesOfKind, kind) ? rulesOfKind[kind] : undefined;
  const rules = found !== undefined && versionOf(found) === apiVersion ? found : undefined;
  if (rules === undefined) {
    const known = `known here: ${knownKinds()}`;
    const sentence = `no matches for kind ${goQuote(kind)} in version ${goQuote(apiVersion)}; ${known}`;
    return refused(["kind"], sentence);
  }
  const misshapen = shapeProblem(value, rules.shape);
  if (misshapen) {
    const sentence = `${kind} in version ${goQuote(apiVersion)} cannot be handled as a ${kind}: ${misshapen.message}`;
    return refused(misshapen.path, sentence);
  }
  const object = completed(withoutNulls(value), rules);
  const errors = rules.validate(object);
  if (errors.length === 0) return { isValid: true, object };
  const subject = `${kind} ${goQuote(object.metadata.name ?? "")} is invalid`;
  const problems = errors.map((error) => ({
    path: error.path,
    message: `${subject}: ${fieldErrorText(error)}`,
  }));
  return { isValid: false, problems };
}

function versionOf({ apiVersion = "v1" }: KindRules): string {
  return apiVersion;
}

/** `Pod, Node, Namespace and List of version "v1"; ...`. */
function knownKinds(): string {
  const kindsOf = new Map<string, string[]>();
  for (const [kind, rules] of Object.entries(rulesOfKind)) {
    const version = versionOf(rules);
    kindsOf.set(version, [...(kindsOf.get(version) ?? []), kind]);
  }
  const texts = Array.from(kindsOf, ([version, kinds]) => {
    const all = version === "v1" ? [...kinds, "List"] : kinds;
    return `${all.slice(0, -1).join(", ")} and ${all.at(-1)} of version ${goQuote(version)}`;
  });
  return texts.join("; ");
}

function refused(path: FieldPath, message: string): ObjectReading {
  return { isValid: false, problems: [{ path, message }] };
}

/** With the parts that validation reads; Go decodes an absent struct as an empty one. */
function completed(value: Record<string, unknown>, { isNamespaced }: KindRules): KubernetesObject {
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  const namespaced =
    isNamespaced && !metadata.namespace ? { ...metadata, namespace: DEFAULT_NAMESPACE } : metadata;
  const spec = value.kind === "Pod" ? { spec: value.spec ?? {} } : {};
  return { ...value, metadata: namespaced, ...spec } as unknown as KubernetesObject;
}

/** A null member means "not set" to Go's decoder; `creationTimestamp: null` stands in every manifest that kubectl generates. */
function withoutNulls(value: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(value).filter(([, member]) => member !== null && member !== undefined);
  return Object.fromEntries(entries.map(([key, member]) => [key, cleaned(member)]));
}

function cleaned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleaned);
  return isRecord(value) ? withoutNulls(value) : value;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
