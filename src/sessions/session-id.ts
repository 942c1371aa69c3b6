import { randomBytes, randomUUID } from "node:crypto";

/**
 * A new replica id for each start, so that a replica that reuses an address is not taken for the
 * previous one.
 */
export function newReplicaId(): string {
  return randomBytes(4).toString("hex");
}

const DAY_MS = 24 * 60 * 60_000;

/**
 * A UUID of its replica, so that each replica knows where a session runs, and of the day of its
 * start, which leads to its recording (RFC 9562: version 8).
 */
export function newSessionId(replica: string, startedAt: Date = new Date()): string {
  const day = Math.floor(startedAt.getTime() / DAY_MS) & 0xffff;
  return `${replica}-${day.toString(16).padStart(4, "0")}-8${randomUUID().slice(15)}`;
}

/** The start of the day, in UTC, on which the session with this id began; undefined for any other text. */
export function dayOfSession(id: string): Date | undefined {
  const [, , day] = SESSION_ID.exec(id) ?? [];
  return day === undefined ? undefined : new Date(Number.parseInt(day, 16) * DAY_MS);
}

const SESSION_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The replica that a session's id names; undefined for any other text. */
export function replicaOfSession(id: string): string | undefined {
  return SESSION_ID.exec(id)?.[1];
}
