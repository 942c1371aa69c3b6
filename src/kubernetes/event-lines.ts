import { linesUpTo } from "@sluice/client/internal/net/lines-up-to";
import { MalformedAnswerError } from "./api-client.ts";

/**
 * One event of a watch: etcd refuses objects over 1.5 MiB, and JSON may be longer. Past it the
 * watch starts again.
 */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  /** Unchecked: a bad object must not break the watch of the others. */
  readonly object: unknown;
}

/**
 * Yields a watch's events, one JSON line each, as soon as a line is complete. Throws
 * MalformedAnswerError for any other line; the watch must then restart from the last good event.
 */
export async function* eventLines(
  chunks: AsyncIterable<Buffer>,
  maxEventBytes = MAX_EVENT_BYTES,
): AsyncGenerator<WatchEvent, void> {
  const refuse = (problem: string): Error => new MalformedAnswerError(`an event ${problem}`);
  for await (const line of linesUpTo(chunks, maxEventBytes, refuse))
    if (line.byteLength > 0) yield parsedEvent(line);
}

function parsedEvent(line: Buffer): WatchEvent {
  let event: Partial<WatchEvent> | undefined;
  try {
    event = JSON.parse(line.toString("utf8")) as Partial<WatchEvent>;
  } catch {
    throw new MalformedAnswerError("an event is no JSON");
  }
  if (!EVENT_TYPES.has(String(event?.type))) throw new MalformedAnswerError("an event has no known type");
  return event as WatchEvent;
}

const EVENT_TYPES: ReadonlySet<string> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);
