import { linesUpTo } from "@sluice/client/internal/net/lines-up-to";
import { MalformedAnswerError } from "./api-client.ts";
import { metadataIn } from "./live-object.ts";

/**
 * Objects in one list, three times the pods that Kubernetes supports; an empty page counts as 500.
 * Past it the list is malformed: the last list's objects stay, and it is tried again later.
 */
const MAX_LISTED_OBJECTS = 500_000;
/** What an empty page counts as: real API servers send none, and 1,000 of them fail the list. */
const EMPTY_PAGE_OBJECTS = 500;

/**
 * The entries of an answer's list; Go writes null for none. Throws MalformedAnswerError for anything
 * else.
 */
export function listIn(answer: unknown, name: string): readonly unknown[] {
  const list = (answer as Readonly<Record<string, unknown>> | null | undefined)?.[name] ?? [];
  if (Array.isArray(list)) return list;
  throw new MalformedAnswerError(`the API server's answer has ${name} that are no list`);
}

/**
 * Yields the pages of a collection's list. Returns its version. Throws MalformedAnswerError if an
 * answer is not a list, or if the pages do not end.
 */
export async function* listPages(
  get: (continueAt: string | undefined) => Promise<unknown>,
): AsyncGenerator<readonly unknown[], string> {
  let listed = 0;
  for (let at: string | undefined; ; ) {
    const page = await get(at);
    const { kind, metadata } = (page ?? {}) as Readonly<Record<string, unknown>>;
    const { resourceVersion, continue: next } = (metadata ?? {}) as Readonly<Record<string, unknown>>;
    const isVersion = resourceVersion === "" || metadataIn(page).resourceVersion !== undefined;
    if (typeof kind !== "string" || !kind.endsWith("List") || !isVersion) {
      throw new MalformedAnswerError("the API server's answer is not a list");
    }
    const items = listIn(page, "items");
    yield items;
    listed += items.length || EMPTY_PAGE_OBJECTS;
    if (typeof next !== "string" || next === "") return resourceVersion as string;
    if (next === at || listed >= MAX_LISTED_OBJECTS) {
      throw new MalformedAnswerError("the pages of the API server's list do not end");
    }
    at = next;
  }
}

/**
 * The size of one watch event: etcd refuses objects over 1.5 MiB, and JSON may be longer. Past it
 * the watch starts again.
 */
const MAX_EVENT_BYTES = 8 * 1024 * 1024;

export interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  /** Not checked here: one bad object must not break the watch of the others. */
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
    throw new MalformedAnswerError("an event is not JSON");
  }
  if (!EVENT_TYPES.has(String(event?.type))) throw new MalformedAnswerError("an event has no known type");
  return event as WatchEvent;
}

const EVENT_TYPES: ReadonlySet<string> = new Set(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]);
