import type { KubernetesObject, ObjectKind } from "../api/objects.ts";
import { strategyOf } from "../api/strategy/strategies.ts";
import { isShaped, shapeProblem } from "../api/validation/shape.ts";
import { asDecoded } from "../api/validation/without-nulls.ts";
import { projected } from "./projections.ts";

/** An object has not its kind's shape. The message names fields and types, never values. */
export class BadObjectError extends Error {
  override readonly name = "BadObjectError";
  readonly kind: ObjectKind;
  readonly namespace: string | undefined;
  readonly objectName: string | undefined;

  constructor(kind: ObjectKind, value: unknown, problem: string) {
    super(problem);
    const { namespace, name } = metadataIn(value);
    this.kind = kind;
    this.namespace = namespace;
    this.objectName = name;
  }
}

/**
 * Turns an API server's object into a stored one: right shape, projected, no nulls, required fields
 * set. List items lack a kind. Throws BadObjectError.
 */
export function liveObject(kind: ObjectKind, value: unknown): KubernetesObject {
  const strategy = strategyOf(kind);
  if (strategy === undefined) throw new BadObjectError(kind, value, "its kind is not known here");
  const { name, given } = { ...metadataIn(value), given: value as Record<string, unknown> };
  if (!isShaped(value, strategy.shape)) {
    const problem = shapeProblem(value, strategy.shape)?.message ?? "its form is not that of its kind";
    throw new BadObjectError(kind, value, problem);
  }
  if (name === undefined) throw new BadObjectError(kind, value, "it has no name");
  if ((given.kind ?? kind) !== kind) throw new BadObjectError(kind, value, "it is of another kind");
  const named = { ...given, kind, apiVersion: strategy.apiVersion } as unknown as KubernetesObject;
  return asDecoded(projected(named), strategy.shape);
}

/** The metadata of an object that may otherwise be malformed. */
export function metadataIn(value: unknown): {
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly resourceVersion: string | undefined;
} {
  const { metadata } = (value ?? {}) as { metadata?: unknown };
  const { namespace, name, resourceVersion } = (metadata ?? {}) as Record<string, unknown>;
  return { namespace: textOf(namespace), name: textOf(name), resourceVersion: textOf(resourceVersion) };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
