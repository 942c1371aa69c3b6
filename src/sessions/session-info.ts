import type { Plan } from "./plan.ts";
import type { Subresource } from "./streaming-request.ts";

/**
 * The plan of a session through a proxy subresource: the API server finds the node, and the bytes pass
 * undecoded.
 */
export const PROXIED = { kind: "proxied", countedAs: "other", reason: "proxy-subresource" } as const;

/** Facts about a session from its admission on, as lists, other processes and logs have them. */
export interface ListedSession {
  readonly id: string;
  readonly subresource: Subresource;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly user: string;
  /** The authenticated user, if that user impersonates another. */
  readonly requestedBy?: string;
  readonly plan: Pick<Plan | typeof PROXIED, "kind" | "reason">;
  readonly startedAt: Date;
  /** Absent for a port-forward. */
  readonly container?: string;
  /**
   * The container is an ephemeral one, as `kubectl debug` adds; absent: it is not one, or that is
   * unknown.
   */
  readonly ephemeral?: true;
  /** Absent for a session through a proxy subresource. */
  readonly tty?: boolean;
  readonly stdin?: boolean;
  /** The address of the connection's peer, and its User-Agent, cut; "" if it sent none. */
  readonly client?: { readonly address: string; readonly agent: string };
  /** The protocol agreed with the client; "" for a WebSocket without a subprotocol. */
  readonly protocol?: string;
}

/** Characters of a client's User-Agent in lists of sessions. Past it the rest is cut. */
const MAX_AGENT_CHARACTERS = 256;

/** The facts about a session for this process. */
export interface SessionInfo extends ListedSession {
  readonly plan: Plan | typeof PROXIED;
  /** Absent for a session through a proxy subresource. */
  readonly details?: SessionDetails | undefined;
}

/** Facts for observers only, in no list and no log line: a command line may contain secrets. */
interface SessionDetails {
  /** Absent for a port-forward. */
  readonly container?: string | undefined;
  readonly isEphemeral?: boolean | undefined;
  /** Empty unless it is an exec. */
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly groups: readonly string[];
  /** When its user's credentials expire (`UserInfo`); absent: never, or it is unknown. */
  readonly expiresAtMs?: number | undefined;
  /** The address of the connection's peer, and its User-Agent; "" if it sent none. */
  readonly client: { readonly address: string; readonly agent: string };
  /** The protocol agreed with the client; "" before, and for a WebSocket without a subprotocol. */
  readonly protocol: string;
}

/** The session without the fields that only observers see. */
export function listed({ details, plan: { kind, reason }, ...info }: SessionInfo): ListedSession {
  if (details === undefined) return { ...info, plan: { kind, reason } };
  const { container, isEphemeral, tty, stdin, protocol, client } = details;
  const { address, agent } = client;
  return {
    ...info,
    plan: { kind, reason },
    ...(container !== undefined && { container }),
    ...(isEphemeral === true && { ephemeral: true }),
    tty,
    stdin,
    client: { address, agent: agent.slice(0, MAX_AGENT_CHARACTERS) },
    protocol,
  };
}
