import { afterEach } from "vitest";
import { openSocketCount, until } from "../http/loopback.ts";

/** What a test adds here is closed after it; then no socket may be open. */
export function closedAfterEach(): (() => Promise<void>)[] {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await until(() => openSocketCount() === 0, "all sockets are closed");
  });
  return closing;
}

/** The error with which an attempt fails; it must be of this class. */
export async function failureOf<E extends Error>(
  kind: new (...arguments_: never[]) => E,
  attempt: Promise<unknown>,
): Promise<E> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof kind) return error;
  throw new Error(`no ${kind.name} but ${error}`);
}
