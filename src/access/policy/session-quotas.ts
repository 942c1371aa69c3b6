import type { StatusError } from "@sluice/client/internal/api/status";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { SessionPolicy } from "../../config/sections/policy.ts";

const RETRY_AFTER_SECONDS = 10;

/** Counts each user's and namespace's sessions, including those being set up. */
export class SessionQuotas {
  #limits: SessionPolicy["limits"];
  readonly #ofUser = new Map<string, number>();
  readonly #ofNamespace = new Map<string, number>();

  constructor(limits: SessionPolicy["limits"]) {
    this.#limits = limits;
  }

  /** Sessions beyond a lowered limit continue. */
  replaceLimits(limits: SessionPolicy["limits"]): void {
    this.#limits = limits;
  }

  /**
   * Reserves a place in both counts, or throws StatusError 429 and reserves none. The result
   * releases both, once.
   */
  take(user: string, namespace: string): () => void {
    const { maxSessionsPerUser = Infinity, maxSessionsPerNamespace = Infinity } = this.#limits;
    if ((this.#ofUser.get(user) ?? 0) >= maxSessionsPerUser) throw userIsFull(user, this.#limits);
    if ((this.#ofNamespace.get(namespace) ?? 0) >= maxSessionsPerNamespace)
      throw namespaceIsFull(namespace, this.#limits);
    return this.count(user, namespace);
  }

  /** Counts a session regardless of the limits. */
  count(user: string, namespace: string): () => void {
    add(this.#ofUser, user, 1);
    add(this.#ofNamespace, namespace, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      add(this.#ofUser, user, -1);
      add(this.#ofNamespace, namespace, -1);
    };
  }

  /** Counted users and namespaces; those without sessions are removed. */
  get size(): number {
    return this.#ofUser.size + this.#ofNamespace.size;
  }
}

export function userIsFull(user: string, { maxSessionsPerUser }: SessionPolicy["limits"]): StatusError {
  return isFull(`user ${JSON.stringify(user)}`, maxSessionsPerUser);
}

export function namespaceIsFull(
  namespace: string,
  { maxSessionsPerNamespace }: SessionPolicy["limits"],
): StatusError {
  return isFull(`namespace ${JSON.stringify(namespace)}`, maxSessionsPerNamespace);
}

function isFull(subject: string, limit: number | undefined): StatusError {
  return WIRE_ERRORS["quota-full"].streaming({ subject, limit, seconds: RETRY_AFTER_SECONDS });
}

function add(counts: Map<string, number>, key: string, difference: number): void {
  const count = (counts.get(key) ?? 0) + difference;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
