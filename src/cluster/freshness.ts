import type { StatusError } from "@sluice/client/internal/api/status";
import type { ObjectKind } from "../api/objects.ts";

/** The kinds that decide a session. */
export const SESSION_KINDS: readonly ObjectKind[] = ["Pod", "Node", "Namespace"];
export const RBAC_KINDS: readonly ObjectKind[] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/** The age of some kinds' state. */
export interface Freshness {
  readonly asOf: Date;
  /** The 503 for requests that need the state, if it is too old. */
  readonly problem: StatusError | undefined;
}

/** Throws StatusError 503 if the state of the kinds is too old. */
export function requireFresh(
  { freshnessOf }: { readonly freshnessOf?: ((kinds: readonly ObjectKind[]) => Freshness) | undefined },
  kinds: readonly ObjectKind[],
): void {
  const problem = freshnessOf?.(kinds).problem;
  if (problem !== undefined) throw problem;
}
