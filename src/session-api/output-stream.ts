import { LEFT, type OutputAnswer, type OutputPage } from "../sessions/session-outputs.ts";
import type { StreamingSession } from "./streaming-session.ts";

/** How long a session's process may leave a viewer without an answer. Past it the view ends. */
export const MAX_UNANSWERED_MS = 10_000;
const AGAIN_MS = 500;
/** The last event's text in a view whose session has ended. */
export const SESSION_OVER = "the session is over";
const VIEW_LOST = "the view was lost";
const REVOKED = "you may no longer view this session";
const DEFAULT_SIZE = { cols: 80, rows: 24 };

interface ViewParts {
  /** Reads the output that follows `after`. */
  read(after: number): Promise<OutputAnswer>;
  /**
   * Calls `end` once the viewer may no longer view the session. Call the result to stop following.
   */
  follow(end: () => void): () => void;
}

/**
 * Streams a session's output as asciicast v3, line by line, until the session ends. Reads as fast
 * as its client does. `return` ends it at once, even while it waits for output.
 */
export function outputStream(
  session: StreamingSession,
  first: OutputPage,
  parts: ViewParts,
): AsyncIterableIterator<Uint8Array, undefined> {
  const left = new AbortController();
  const lines = linesOf(session, first, parts, left.signal);
  return {
    next: () => lines.next(),
    // A generator's own `return` would wait for the next output.
    return: () => {
      left.abort();
      void parts.read(LEFT);
      return lines.return(undefined);
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

async function* linesOf(
  session: StreamingSession,
  first: OutputPage,
  { read, follow }: ViewParts,
  left: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const over = new AbortController();
  const unfollow = follow(() => over.abort());
  const ended = AbortSignal.any([left, over.signal]);
  const cast = new CastLines(session, first);
  try {
    yield cast.header;
    let after = first.from;
    let silentSinceMs: number | undefined;
    for (let page: OutputAnswer | undefined = first; ; page = await unlessAborted(() => read(after), ended)) {
      if (left.aborted) return;
      if (page === undefined || over.signal.aborted) return yield cast.mark(REVOKED);
      if (typeof page !== "string") {
        silentSinceMs = undefined;
        const lines = cast.page(page, after);
        if (lines !== undefined) yield lines;
        if (page.isOver) return yield cast.mark(SESSION_OVER);
        after = page.next;
        continue;
      }
      silentSinceMs ??= performance.now();
      if (page !== "unreachable") return yield cast.mark(page === "unknown" ? SESSION_OVER : VIEW_LOST);
      if (performance.now() - silentSinceMs > MAX_UNANSWERED_MS)
        return yield cast.mark("the session's process does not answer");
      await unlessAborted(() => new Promise((resolve) => setTimeout(resolve, AGAIN_MS)), ended);
    }
  } finally {
    unfollow();
  }
}

/** The result of `wait`, or undefined as soon as the signal aborts. */
async function unlessAborted<T>(wait: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return undefined;
  let stop = (): void => {};
  const aborted = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
  });
  signal.addEventListener("abort", stop);
  try {
    return await Promise.race([wait(), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The lines of an asciicast, each with the time since the one before. */
class CastLines {
  readonly header: Uint8Array;
  #lastMs: number;

  constructor({ metadata, spec }: StreamingSession, first: OutputPage) {
    this.#lastMs = first.events[0]?.[0] ?? Date.now();
    const title = [metadata.namespace, spec.pod, spec.container].join("/");
    const [size] = first.events.filter(([, code]) => code === "r");
    const header = {
      version: 3,
      term: size === undefined ? DEFAULT_SIZE : sizeOf(size[2]),
      timestamp: Math.floor(this.#lastMs / 1_000),
      title: `${title} by ${spec.user.username}`,
    };
    this.header = encoded(`${JSON.stringify(header)}\n`);
  }

  /**
   * The page's events, after a mark if output between `after` and the page is missing. Undefined if
   * there are none.
   */
  page({ from, events }: OutputPage, after: number): Uint8Array | undefined {
    const isMissing = from > after;
    if (!isMissing && events.length === 0) return undefined;
    const mark = isMissing ? this.#line(events[0]?.[0] ?? this.#lastMs, "m", "output is missing here") : "";
    return encoded(mark + events.map((event) => this.#line(...event)).join(""));
  }

  mark(text: string): Uint8Array {
    return encoded(this.#line(Date.now(), "m", text));
  }

  #line(atMs: number, code: string, text: string): string {
    const seconds = Math.max(0, Math.round(atMs - this.#lastMs)) / 1_000;
    // A clock that was set back costs one interval, not all until it is there again.
    this.#lastMs = atMs;
    return `${JSON.stringify([seconds, code, text])}\n`;
  }
}

function sizeOf(text: string): typeof DEFAULT_SIZE {
  const [cols = 0, rows = 0] = text.split("x").map(Number);
  return { cols, rows };
}

function encoded(text: string): Uint8Array {
  return Buffer.from(text);
}
