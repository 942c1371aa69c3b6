import { ResizeDecoder } from "@sluice/protocols/remotecommand";
import { RESIZE, type SessionObserver, type SessionStream, type Side } from "./observers/session-observer.ts";
import type { Screen, Screens } from "./screens/screens.ts";
import type { Sessions } from "./sessions.ts";

/** Viewers of one session. Past it: 429. */
const MAX_VIEWERS_PER_SESSION = 10;
/** Viewed sessions of one process. Past it: 429. */
const MAX_VIEWED_SESSIONS = 100;
/** Characters kept of a viewed session. Past it a slow viewer skips the oldest and sees a note. */
const MAX_KEPT_OUTPUT = 256 * 1024;
/** Characters of output in one answer. Past it the next answer has the rest. */
const MAX_OUTPUT_PAGE = 64 * 1024;
/** How long a read waits for output. Past it the answer has none. */
export const OUTPUT_WAIT_MS = 400;
/** How long a viewer may not read. Past it the viewer is gone; without viewers nothing is kept. */
const MAX_VIEWER_SILENCE_MS = 5_000;
/** How long a viewer waits for the screen. Past it the viewer continues without one. */
const MAX_SCREEN_WAIT_MS = 5_000;
const NOT_INSTALLED = "the current screen needs @xterm/headless, which the gateway does not have";
const NOT_KEPT = "this gateway keeps no current screens: what comes from now on follows";
const NOT_KNOWN = "the current screen is not known: what comes from now on follows";
const INCOMPLETE = "the current screen may be incomplete: older output may have drawn parts of it";
/** Characters that each event counts besides its text. */
const EVENT_COST = 32;

/** A viewer's request for the output that follows. */
export interface OutputRead {
  readonly id: string;
  readonly viewer: string;
  /** The `next` of the page before; -1: from the oldest kept; LEFT: the viewer reads no more. */
  readonly after: number;
}

/** An older process refuses this value, and waits for MAX_VIEWER_SILENCE_MS. */
export const LEFT = -2;

/** Output, a size as "COLSxROWS", or a note for the viewer. Times are milliseconds since 1970. */
type OutputEvent = readonly [atMs: number, code: "o" | "r" | "m", text: string];

export interface OutputPage {
  /** Greater than `after` if the viewer missed the events in between. */
  readonly from: number;
  /** -1: the viewer has to ask for the oldest output again. */
  readonly next: number;
  readonly events: readonly OutputEvent[];
  /** Nothing follows. */
  readonly isOver: boolean;
}

const REFUSALS = ["unknown", "gone", "unreachable", "too-many", "no-output"] as const;

/**
 * `unknown`: the process does not run the session. `gone`: no replica has the process.
 * `unreachable`: it does not answer. `no-output`: a port-forward, or a session that is not decoded.
 */
export type OutputAnswer = OutputPage | (typeof REFUSALS)[number];

/**
 * The output of this process's sessions. Each viewer asks for the events after those that it has. A
 * session is observed while it has viewers, and never waits for one.
 */
export class SessionOutputs {
  readonly #registries: () => readonly Pick<Sessions, "find">[];
  readonly #screens: Pick<Screens, "screenOf" | "openCharacterOf" | "isMissing"> | undefined;
  readonly #viewed = new Map<string, ViewedSession>();
  #timer: NodeJS.Timeout | undefined;

  /** Without `screens` a viewer sees only later output. */
  constructor(
    registries: () => readonly Pick<Sessions, "find">[],
    screens?: Pick<Screens, "screenOf" | "openCharacterOf" | "isMissing">,
  ) {
    this.#registries = registries;
    this.#screens = screens;
  }

  get viewers(): number {
    let viewers = 0;
    for (const viewed of this.#viewed.values()) viewers += viewed.viewers.size;
    return viewers;
  }

  async read({ id, viewer, after }: OutputRead): Promise<OutputAnswer> {
    if (after === LEFT) return this.#leave(id, viewer);
    const viewed = this.#viewed.get(id) ?? this.#observe(id);
    if (typeof viewed === "string") return viewed;
    if (!viewed.viewers.has(viewer) && viewed.viewers.size >= MAX_VIEWERS_PER_SESSION) return "too-many";
    viewed.viewers.set(viewer, performance.now());
    return (await viewed.screenFor(after)) ?? (await viewed.pageAfter(after));
  }

  #leave(id: string, viewer: string): OutputAnswer {
    const isViewer = this.#viewed.get(id)?.viewers.delete(viewer) === true;
    this.#sweep();
    return isViewer ? "gone" : "unknown";
  }

  #observe(id: string): ViewedSession | "unknown" | "too-many" | "no-output" {
    const session = this.#registries()
      .map((sessions) => sessions.find(id))
      .find((found) => found !== undefined);
    if (session === undefined || session.isOver) return "unknown";
    if (session.info?.details === undefined || session.info.subresource === "portforward") return "no-output";
    if (this.#viewed.size >= MAX_VIEWED_SESSIONS) return "too-many";
    const { tty } = session.info.details;
    const note = tty && this.#screens === undefined ? NOT_KEPT : undefined;
    const viewed = new ViewedSession(id, tty ? this.#screens : undefined, note);
    viewed.stop = session.observe(viewed);
    this.#viewed.set(id, viewed);
    this.#timer ??= setInterval(() => this.#sweep(), MAX_VIEWER_SILENCE_MS / 5).unref();
    return viewed;
  }

  #sweep(): void {
    const oldestMs = performance.now() - MAX_VIEWER_SILENCE_MS;
    for (const [id, viewed] of this.#viewed) {
      for (const [viewer, readMs] of viewed.viewers) if (readMs < oldestMs) viewed.viewers.delete(viewer);
      if (viewed.viewers.size > 0) continue;
      viewed.stop();
      this.#viewed.delete(id);
    }
    if (this.#viewed.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

interface AskedScreen {
  /** The number of the first event that the screen does not show. */
  readonly at: number;
  readonly sinceMs: number;
  readonly screen: Promise<Screen | undefined>;
}

/** One session's latest output. Events are numbered; a later observation's numbers are higher. */
class ViewedSession implements SessionObserver {
  readonly isRequired = false;
  readonly payload = { node: true, sizes: true };
  /** When each viewer last read. */
  readonly viewers = new Map<string, number>();
  stop: () => void = () => {};
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  readonly #sizes = new ResizeDecoder();
  #events: OutputEvent[] = [];
  /** The number of the first event, and its index. */
  #from = Date.now() * 1_000;
  #head = 0;
  #kept = 0;
  #isOver = false;
  #asked: AskedScreen | undefined;
  #note: string | undefined;
  readonly #screens: Pick<Screens, "screenOf" | "isMissing"> | undefined;
  readonly #id: string;
  readonly #waiting = new Set<() => void>();

  /** `screens`: absent for a session without a terminal. */
  constructor(
    id: string,
    screens?: Pick<Screens, "screenOf" | "openCharacterOf" | "isMissing">,
    note?: string | undefined,
  ) {
    this.#id = id;
    this.#note = note;
    this.#screens = screens;
    if (screens !== undefined) this.#decoders.stdout.decode(screens.openCharacterOf(id), { stream: true });
  }

  onData(stream: SessionStream, from: Side, part: Uint8Array): undefined {
    if (stream === RESIZE) {
      for (const { width, height } of this.#sizes.push(part)) this.#push("r", `${width}x${height}`);
    } else if (from === "node" && (stream.type === "stdout" || stream.type === "stderr")) {
      this.#push("o", this.#decoders[stream.type].decode(part, { stream: true }));
    }
  }

  onEnd(): void {
    this.#push("o", this.#decoders.stdout.decode() + this.#decoders.stderr.decode());
    this.#isOver = true;
    this.#wakeAll();
  }

  /**
   * The screen, for a viewer that has no output yet or missed some; output continues from there. A
   * page without events: not drawn yet. Undefined: the viewer continues without a screen.
   */
  async screenFor(after: number): Promise<OutputPage | undefined> {
    if (this.#isOver || after >= this.#from) return undefined;
    if (this.#note !== undefined) return after < 0 ? this.#noted(after, this.#note) : undefined;
    if (this.#screens === undefined) return undefined;
    this.#asked ??= { at: this.#next, sinceMs: performance.now(), screen: this.#screens.screenOf(this.#id) };
    const asked = this.#asked;
    const screen = await within(OUTPUT_WAIT_MS, asked.screen);
    if (screen === "late" && performance.now() - asked.sinceMs < MAX_SCREEN_WAIT_MS)
      return { from: after, next: after, events: [], isOver: false };
    if (this.#asked === asked) this.#asked = undefined;
    if (screen === undefined || screen === "late") {
      this.#note = this.#screens.isMissing ? NOT_INSTALLED : NOT_KNOWN;
      return this.#noted(after, this.#note);
    }
    const { at } = asked;
    const nowMs = Date.now();
    const { cols, rows, text, isComplete } = screen;
    const note: readonly OutputEvent[] = isComplete ? [] : [[nowMs, "m", INCOMPLETE]];
    const events: readonly OutputEvent[] = [[nowMs, "r", `${cols}x${rows}`], ...note, [nowMs, "o", text]];
    return { from: at, next: at, events, isOver: false };
  }

  async #noted(after: number, note: string): Promise<OutputPage> {
    const page = await this.pageAfter(after);
    return { ...page, events: [[page.events[0]?.[0] ?? Date.now(), "m", note], ...page.events] };
  }

  /** Waits for a while if nothing follows yet. */
  async pageAfter(after: number): Promise<OutputPage> {
    if (after >= this.#next && !this.#isOver) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, OUTPUT_WAIT_MS);
        this.#waiting.add(wake);
      });
    }
    const from = Math.min(Math.max(after, this.#from), this.#next);
    const events: OutputEvent[] = [];
    let characters = 0;
    for (let at = from; at < this.#next && characters < MAX_OUTPUT_PAGE; at += 1) {
      const event = this.#events[this.#head + at - this.#from] as OutputEvent;
      characters += event[2].length + EVENT_COST;
      events.push(event);
    }
    const next = from + events.length;
    return { from, next, events, isOver: this.#isOver && next === this.#next };
  }

  get #next(): number {
    return this.#from + this.#events.length - this.#head;
  }

  #push(code: OutputEvent[1], text: string): void {
    if (text === "") return;
    this.#events.push([Date.now(), code, text]);
    this.#kept += text.length + EVENT_COST;
    while (this.#kept > MAX_KEPT_OUTPUT && this.#head < this.#events.length - 1) {
      this.#kept -= (this.#events[this.#head] as OutputEvent)[2].length + EVENT_COST;
      this.#head += 1;
      this.#from += 1;
    }
    if (this.#head > this.#events.length / 2) {
      this.#events = this.#events.slice(this.#head);
      this.#head = 0;
    }
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** The screen, "late", or undefined if it is not known. */
async function within(ms: number, screen: Promise<Screen | undefined>): Promise<Screen | "late" | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, ms, "late");
  });
  return await Promise.race([screen, late]).finally(() => clearTimeout(timer));
}

/** Parses another process's answer. Throws TypeError if it is malformed. */
export function readOutputAnswer(value: unknown): OutputAnswer {
  const refusal = REFUSALS.find((each) => each === value);
  if (refusal !== undefined) return refusal;
  const { from, next, events, isOver } = (value ?? {}) as Partial<OutputPage>;
  if (!Array.isArray(events) || !events.every(isEvent) || !isNumber(from) || !isNumber(next) || next < from)
    throw new TypeError("the answer is not a page of output");
  // With more numbers than events the viewer would skip later output.
  if (next > from + events.length) throw new TypeError("the answer is not a page of output");
  return { from, next, events, isOver: isOver === true };
}

/** True for an event's number; -1 is before the first. */
function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= -1;
}

const SIZE = /^[0-9]{1,5}x[0-9]{1,5}$/;

function isEvent(value: unknown): value is OutputEvent {
  if (!Array.isArray(value)) return false;
  const [atMs, code, text] = value;
  if (!Number.isFinite(atMs) || typeof text !== "string") return false;
  return code === "o" || code === "m" || (code === "r" && SIZE.test(text));
}
