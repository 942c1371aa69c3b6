import type { Plan } from "./plan.ts";
import type { Subresource } from "./streaming-request.ts";

/**
 * The plan of a session through a proxy subresource: the API server finds the node, and the bytes pass
 * undecoded.
 */
export const PROXIED = { kind: "proxied", reason: "proxy-subresource" } as const;

/** The facts about a session, from its admission on. */
export interface SessionInfo {
  readonly id: string;
  readonly subresource: Subresource;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly user: string;
  /** The authenticated user, if that user impersonates another. */
  readonly requestedBy?: string;
  readonly plan: Plan | typeof PROXIED;
  readonly startedAt: Date;
}
