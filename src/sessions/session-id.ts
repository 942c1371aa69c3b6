import { randomBytes, randomUUID } from "node:crypto";

/**
 * A new replica id for each start, so that a replica that reuses an address is not taken for the
 * previous one.
 */
export function newReplicaId(): string {
  return randomBytes(4).toString("hex");
}

/** A UUID that begins with its replica's id, so that each replica knows where a session runs (RFC 9562: version 8). */
export function newSessionId(replica: string): string {
  const random = randomUUID();
  return `${replica}-${random.slice(9, 14)}8${random.slice(15)}`;
}

const SESSION_ID = /^([0-9a-f]{8})-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The replica that a session's id names; undefined for any other text. */
export function replicaOfSession(id: string): string | undefined {
  return SESSION_ID.exec(id)?.[1];
}
