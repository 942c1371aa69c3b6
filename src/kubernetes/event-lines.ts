import { MalformedAnswerError } from "./api-error.ts";

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
  let started: Buffer[] = [];
  let startedBytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const rest = chunk.subarray(from, end);
      const line = started.length === 0 ? rest : Buffer.concat([...started, rest]);
      started = [];
      startedBytes = 0;
      from = end + 1;
      if (line.byteLength > 0) yield parsedEvent(line);
    }
    if (from === chunk.byteLength) continue;
    started.push(chunk.subarray(from));
    startedBytes += chunk.byteLength - from;
    if (startedBytes > maxEventBytes)
      throw new MalformedAnswerError(`an event has more than ${maxEventBytes} bytes`);
  }
  if (startedBytes > 0) throw new MalformedAnswerError("the watch ended within an event");
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
