import type { ObjectKind } from "../api/objects.ts";
import type { StatusError } from "../api/status.ts";

/** What a session is decided by. */
export const SESSION_KINDS: readonly ObjectKind[] = ["Pod", "Node", "Namespace"];
export const RBAC_KINDS: readonly ObjectKind[] = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/** How old what is known of some kinds may be. */
export interface Freshness {
  readonly asOf: Date;
  /** It no longer counts: the 503 for requests that need it. */
  readonly problem: StatusError | undefined;
}

/** Throws StatusError 503 where what is known of the kinds no longer counts. */
export function requireFresh(
  { freshnessOf }: { readonly freshnessOf?: ((kinds: readonly ObjectKind[]) => Freshness) | undefined },
  kinds: readonly ObjectKind[],
): void {
  const problem = freshnessOf?.(kinds).problem;
  if (problem !== undefined) throw problem;
}
