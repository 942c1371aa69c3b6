import type { OutputAnswer, OutputEvent, OutputPage } from "../sessions/session-outputs.ts";
import type { StreamingSession } from "./streaming-session.ts";

/** How long a viewer sees a session whose process does not answer. Past it the view ends. */
export const MAX_UNANSWERED_MS = 10_000;
const AGAIN_MS = 500;
/** The text of the last event of a view that saw its session's end. */
export const SESSION_OVER = "the session is over";
/** How often a viewer is authorized again. */
const REAUTHORIZE_MS = 30_000;
const DEFAULT_SIZE = { cols: 80, rows: 24 };

interface ViewParts {
  /** What followed, for this viewer. */
  read(after: number): Promise<OutputAnswer>;
  /** Whether the viewer may still see it. */
  isAllowed(): Promise<boolean>;
}

/** A session's output as asciicast v3, line by line, until the session ends. Reads as fast as its client does. */
export async function* outputStream(
  { metadata, spec }: StreamingSession,
  first: OutputPage,
  { read, isAllowed }: ViewParts,
): AsyncGenerator<Uint8Array, void> {
  let lastMs = first.events[0]?.[0] ?? Date.now();
  const line = (atMs: number, code: string, text: string): string => {
    const seconds = Math.max(0, Math.round(atMs - lastMs)) / 1_000;
    lastMs = Math.max(lastMs, atMs);
    return `${JSON.stringify([seconds, code, text])}\n`;
  };
  const title = [metadata.namespace, spec.pod, spec.container].join("/");
  const [size] = first.events.filter(([, code]) => code === "r");
  const header = {
    version: 3,
    term: size === undefined ? DEFAULT_SIZE : sizeOf(size),
    timestamp: Math.floor(lastMs / 1_000),
    title: `${title} by ${spec.user.username}`,
  };
  yield encoded(`${JSON.stringify(header)}\n`);
  let after = first.from;
  let silentSinceMs: number | undefined;
  let allowedMs = performance.now();
  for (let page: OutputAnswer = first; ; page = await read(after)) {
    if (typeof page === "string") {
      silentSinceMs ??= performance.now();
      const isLost = page !== "unreachable" || performance.now() - silentSinceMs > MAX_UNANSWERED_MS;
      if (isLost) return yield encoded(line(Date.now(), "m", endOf(page)));
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      continue;
    }
    silentSinceMs = undefined;
    const { from, next, events, isOver } = page;
    const missed = from > after ? [line(events[0]?.[0] ?? lastMs, "m", "output is missing here")] : [];
    const lines = events.map(([atMs, code, text]) => line(atMs, code, text));
    if (missed.length + lines.length > 0) yield encoded([...missed, ...lines].join(""));
    if (isOver) return yield encoded(line(Date.now(), "m", SESSION_OVER));
    after = next;
    if (performance.now() - allowedMs < REAUTHORIZE_MS) continue;
    if (!(await isAllowed()))
      return yield encoded(line(Date.now(), "m", "you may no longer view this session"));
    allowedMs = performance.now();
  }
}

function sizeOf([, , text]: OutputEvent): typeof DEFAULT_SIZE {
  const [cols = 0, rows = 0] = text.split("x").map(Number);
  return { cols, rows };
}

function endOf(answer: Exclude<OutputAnswer, OutputPage>): string {
  return answer === "unreachable" ? "the session's process does not answer" : SESSION_OVER;
}

function encoded(text: string): Uint8Array {
  return Buffer.from(text);
}
