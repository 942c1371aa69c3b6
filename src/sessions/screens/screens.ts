import { Worker } from "node:worker_threads";
import { ownProgram } from "@sluice/client/internal/config/version";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { RunningSession } from "../sessions.ts";
import type { FromScreenThread, TerminalPart, TerminalSize, ToScreenThread } from "./screen-messages.ts";
import { TerminalTail } from "./terminal-tail.ts";

/** Sessions with a terminal whose output is kept. Past it a viewer sees only later output. */
const MAX_SCREENED_SESSIONS = 1_000;
/**
 * Terminals that are emulated. Past it the screen of a busy session is drawn from its latest
 * output.
 */
const MAX_EMULATED_SCREENS = 128;
/** Cells of one screen. Past it the session has no screen. */
const MAX_SCREEN_CELLS = 65_536;
/**
 * Bytes emulated in a second for sessions without viewers. Past it their oldest output is dropped.
 */
const MAX_EMULATED_BYTES_PER_SECOND = 2 * 1024 * 1024;
/**
 * Output that waits for the thread. Past it the oldest output of sessions without viewers is
 * dropped.
 */
const MAX_SCREEN_AHEAD_BYTES = 4 * 1024 * 1024;
/** How long the thread may have no terminal before it ends. */
const IDLE_MS = 5_000;

const PROGRAM = ownProgram("screen-thread", import.meta.url);

/** What a terminal shows. */
export interface Screen extends TerminalSize {
  /** Output that draws this screen on another terminal. */
  readonly text: string;
  /** False: output that may have drawn parts of the screen is missing. */
  readonly isComplete: boolean;
}

interface Kept {
  readonly tail: TerminalTail;
  readonly stop: () => void;
  isComplete: boolean;
  isTooLarge: boolean;
  readonly waiting: ((screen: Screen | undefined) => void)[];
}

/**
 * The current screens of this process's sessions with a terminal. The latest output of each is kept
 * as bytes; a thread emulates it when a viewer comes, or when too much is kept.
 */
export class Screens {
  readonly #program: URL;
  readonly #kept = new Map<string, Kept>();
  /** Sessions whose terminal the thread emulates. */
  readonly #emulated = new Set<string>();
  #worker: Worker | undefined;
  #isMissing = false;
  #idle: NodeJS.Timeout | undefined;
  /** Bytes that the thread has not emulated yet. */
  #ahead = 0;
  #allowance = MAX_EMULATED_BYTES_PER_SECOND;
  #allowedMs = performance.now();

  /** `program`: the compiled screen-thread.ts. */
  constructor(program: URL = PROGRAM) {
    this.#program = program;
  }

  /** The packages for emulation are not installed. */
  get isMissing(): boolean {
    return this.#isMissing;
  }

  /** Call it before the session's first byte. */
  began(session: Pick<RunningSession, "info" | "observe">): void {
    const { info } = session;
    if (info?.details?.tty !== true || this.#isMissing || this.#kept.size >= MAX_SCREENED_SESSIONS) return;
    const { id } = info;
    const tail = new TerminalTail(
      () => this.#spill(id),
      () => this.#forget(id),
    );
    const stop = session.observe(tail);
    this.#kept.set(id, { tail, stop, isComplete: true, isTooLarge: false, waiting: [] });
  }

  /** The bytes of an unfinished character at the end of the session's output. */
  openCharacterOf(id: string): Uint8Array {
    return this.#kept.get(id)?.tail.openCharacter ?? new Uint8Array(0);
  }

  /** The screen after all output so far; undefined if it is not known. */
  screenOf(id: string): Promise<Screen | undefined> {
    const kept = this.#kept.get(id);
    if (kept === undefined || this.#isMissing) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      kept.waiting.push(resolve);
      if (!this.#emulated.has(id)) this.#makeRoom();
      this.#emulate(id, kept, true);
    });
  }

  /**
   * Sends the kept output to the thread. False if there is no room for its terminal, or the thread
   * is busy.
   */
  #spill(id: string): boolean {
    const kept = this.#kept.get(id);
    if (kept === undefined || this.#ahead + kept.tail.length > MAX_SCREEN_AHEAD_BYTES) return false;
    if (!this.#emulated.has(id) && this.#emulated.size >= MAX_EMULATED_SCREENS) return false;
    const nowMs = performance.now();
    const gained = ((nowMs - this.#allowedMs) / 1_000) * MAX_EMULATED_BYTES_PER_SECOND;
    this.#allowance = Math.min(MAX_EMULATED_BYTES_PER_SECOND, this.#allowance + gained);
    this.#allowedMs = nowMs;
    if (this.#allowance < kept.tail.length) return false;
    this.#allowance -= kept.tail.length;
    this.#emulate(id, kept, false);
    return true;
  }

  #emulate(id: string, kept: Kept, wants: boolean): void {
    this.#ahead += kept.tail.length;
    const { parts, isCut } = kept.tail.take();
    if (isCut) kept.isComplete = false;
    const sizes = parts.filter((part): part is TerminalSize => !(part instanceof Uint8Array));
    const last = sizes.at(-1);
    if (last !== undefined) kept.isTooLarge = !fits(last);
    if (kept.isTooLarge) kept.isComplete = false;
    this.#emulated.add(id);
    this.#send({ id, parts: parts.filter((part) => part instanceof Uint8Array || fits(part)), isCut, wants });
  }

  /**
   * Drops the terminal that has been emulated longest; its screen is then drawn from its latest
   * output.
   */
  #makeRoom(): void {
    if (this.#emulated.size < MAX_EMULATED_SCREENS) return;
    for (const id of this.#emulated) {
      const kept = this.#kept.get(id);
      if (kept !== undefined && kept.waiting.length > 0) continue;
      if (kept !== undefined) kept.isComplete = false;
      this.#emulated.delete(id);
      this.#send({ over: id });
      return;
    }
  }

  #forget(id: string): void {
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    kept?.stop();
    for (const resolve of kept?.waiting.splice(0) ?? []) resolve(undefined);
    if (!this.#emulated.delete(id)) return;
    this.#send({ over: id });
    if (this.#emulated.size === 0) this.#idle = setTimeout(() => this.#end(), IDLE_MS).unref();
  }

  #send(message: ToScreenThread): void {
    clearTimeout(this.#idle);
    this.#thread().postMessage(message, "parts" in message ? buffersOf(message.parts) : []);
  }

  #thread(): Worker {
    if (this.#worker !== undefined) return this.#worker;
    const worker = new Worker(this.#program);
    worker.unref();
    worker.on("message", (message: FromScreenThread) => this.#answered(message));
    worker.on("error", (error) => reportFault("observer", error));
    worker.on("exit", () => {
      if (this.#worker === worker) this.#lost();
    });
    this.#worker = worker;
    return worker;
  }

  #answered(message: FromScreenThread): void {
    if ("missing" in message) {
      this.#isMissing = true;
      for (const id of [...this.#kept.keys()]) this.#forget(id);
      this.#end();
      return;
    }
    const { id, bytes, isWanted, screen } = message;
    this.#ahead -= bytes;
    const kept = this.#kept.get(id);
    if (kept === undefined || !isWanted) return;
    const isKnown = screen !== undefined && !kept.isTooLarge;
    kept.waiting.shift()?.(isKnown ? { ...screen, isComplete: kept.isComplete } : undefined);
  }

  #end(): void {
    clearTimeout(this.#idle);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#ahead = 0;
    void worker?.terminate();
  }

  /** The thread ended by itself, and its terminals are lost. */
  #lost(): void {
    this.#worker = undefined;
    this.#ahead = 0;
    for (const id of this.#emulated) {
      const kept = this.#kept.get(id);
      if (kept === undefined) continue;
      kept.isComplete = false;
      for (const resolve of kept.waiting.splice(0)) resolve(undefined);
    }
    this.#emulated.clear();
  }
}

function fits({ cols, rows }: TerminalSize): boolean {
  return cols > 0 && rows > 0 && cols * rows <= MAX_SCREEN_CELLS;
}

function buffersOf(parts: readonly TerminalPart[]): ArrayBuffer[] {
  return parts.flatMap((part) => (part instanceof Uint8Array ? [part.buffer as ArrayBuffer] : []));
}
