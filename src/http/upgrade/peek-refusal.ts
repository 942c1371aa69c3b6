import { Readable } from "node:stream";
import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";

interface PeekedRefusal {
  /** The beginning of the body, as much as arrived in time. */
  readonly text: string;
  /** The refusal, with its full body readable again. */
  readonly refused: RefusedUpgrade;
}

interface PeekOptions {
  readonly maxBytes: number;
  /** Keeps a slow refusal body from delaying the next attempt. */
  readonly timeoutMs: number;
}

/**
 * Reads the beginning of a refusal's body and puts it back. Never rejects: if the body breaks off,
 * returns the part that came.
 */
export async function peekRefusal(
  refused: RefusedUpgrade,
  { maxBytes, timeoutMs }: PeekOptions,
): Promise<PeekedRefusal> {
  const parts = refused.body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const seen: Buffer[] = [];
  let seenBytes = 0;
  let pending: Promise<IteratorResult<Buffer>> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const isLate = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, timeoutMs, "late");
  });
  try {
    while (seenBytes < maxBytes) {
      pending = parts.next();
      const next = await Promise.race([pending, isLate]);
      if (next === "late" || next.done === true) break;
      pending = undefined;
      seen.push(next.value);
      seenBytes += next.value.byteLength;
    }
  } catch {
    // The body's reader will get the same error.
  } finally {
    clearTimeout(timer);
  }
  const body = Readable.from(replay(refused, seen, parts, pending), { objectMode: false });
  // As with the body itself, it may be left unread.
  body.on("error", () => {}).once("close", () => refused.body.destroy());
  const text = Buffer.concat(seen).subarray(0, maxBytes).toString("utf8");
  return { text, refused: { ...refused, body } };
}

async function* replay(
  { body }: RefusedUpgrade,
  seen: readonly Buffer[],
  parts: AsyncIterator<Buffer>,
  pending: Promise<IteratorResult<Buffer>> | undefined,
): AsyncGenerator<Buffer> {
  try {
    yield* seen;
    let next = await (pending ?? parts.next());
    while (next.done !== true) {
      yield next.value;
      next = await parts.next();
    }
  } finally {
    body.destroy();
  }
}
