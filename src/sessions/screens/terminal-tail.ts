import { ResizeDecoder } from "@sluice/protocols/remotecommand";
import {
  RESIZE,
  type SessionObserver,
  type SessionStream,
  type Side,
} from "../observers/session-observer.ts";
import type { TerminalPart, TerminalSize } from "./screen-messages.ts";

/**
 * Output kept of a terminal's session. Past it the screen thread gets it, or the oldest half is
 * dropped.
 */
const MAX_SCREEN_TAIL = 64 * 1024;
/** Sizes kept with that output. Past it the latest replaces the one before. */
const MAX_TAIL_SIZES = 64;
const LEAST_BYTES = 1_024;

/** Keeps a copy of a terminal session's latest output until an emulator takes it. */
export class TerminalTail implements SessionObserver {
  readonly isRequired = false;
  readonly payload = { node: true, sizes: true };
  readonly #isSpilled: () => boolean;
  readonly #over: () => void;
  readonly #resizes = new ResizeDecoder();
  #bytes: Buffer<ArrayBuffer> = Buffer.alloc(0);
  #length = 0;
  #sizes: (TerminalSize & { readonly at: number })[] = [];
  #isCut = false;
  /** The last bytes of the output that was taken: a character may begin there. */
  #before: Uint8Array = new Uint8Array(0);

  /** `isSpilled`: called when the tail is full. False: nothing took the output. */
  constructor(isSpilled: () => boolean, over: () => void) {
    this.#isSpilled = isSpilled;
    this.#over = over;
  }

  get length(): number {
    return this.#length;
  }

  onData(stream: SessionStream, from: Side, part: Uint8Array): undefined {
    if (stream === RESIZE) {
      for (const { width, height } of this.#resizes.push(part)) this.#resize({ cols: width, rows: height });
    } else if (from === "node" && (stream.type === "stdout" || stream.type === "stderr")) this.#append(part);
  }

  onEnd(): void {
    this.#over();
  }

  /** Removes and returns the kept output. `isCut`: earlier output is missing. */
  take(): { readonly parts: readonly TerminalPart[]; readonly isCut: boolean } {
    const parts: TerminalPart[] = [];
    let from = 0;
    const bytesTo = (end: number): void => {
      if (end > from) parts.push(new Uint8Array(this.#bytes.subarray(from, end)));
      from = end;
    };
    for (const { at, ...size } of this.#sizes) {
      bytesTo(at);
      parts.push(size);
    }
    bytesTo(this.#length);
    const isCut = this.#isCut;
    this.#before = this.#last(3);
    this.#bytes = Buffer.alloc(0);
    this.#length = 0;
    this.#sizes = [];
    this.#isCut = false;
    return { parts, isCut };
  }

  /** The bytes of an unfinished character at the end. */
  get openCharacter(): Uint8Array {
    const last = this.#last(3);
    for (let back = 1; back <= last.length; back += 1) {
      const byte = last[last.length - back] as number;
      if (byte < 0x80) break;
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 0;
      if (length > back) return last.subarray(last.length - back);
      if (length > 0) break;
    }
    return new Uint8Array(0);
  }

  #last(count: number): Uint8Array {
    const known = this.#bytes.subarray(0, this.#length).subarray(-count);
    return known.length >= count
      ? Uint8Array.from(known)
      : Buffer.concat([this.#before, known]).subarray(-count);
  }

  #resize(size: TerminalSize): void {
    const last = this.#sizes.at(-1);
    if (last?.at === this.#length || this.#sizes.length >= MAX_TAIL_SIZES) this.#sizes.pop();
    this.#sizes.push({ ...size, at: this.#length });
  }

  #append(part: Uint8Array): void {
    for (let rest = part; rest.length > 0; ) {
      if (this.#length === MAX_SCREEN_TAIL && !this.#isSpilled()) this.#dropOldest();
      const taken = rest.subarray(0, MAX_SCREEN_TAIL - this.#length);
      this.#reserve(this.#length + taken.length);
      this.#bytes.set(taken, this.#length);
      this.#length += taken.length;
      rest = rest.subarray(taken.length);
    }
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const room = Math.min(MAX_SCREEN_TAIL, Math.max(LEAST_BYTES, 2 * length));
    const bytes = Buffer.alloc(room);
    bytes.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bytes;
  }

  /**
   * Starts what is kept at a sequence or a line, so that no part of a sequence is taken for text.
   */
  #dropOldest(): void {
    const half = MAX_SCREEN_TAIL / 2;
    const begins = [this.#bytes.indexOf(0x1b, half), this.#bytes.indexOf(0x0a, half)].filter((at) => at >= 0);
    const from = begins.length === 0 ? half : Math.min(...begins);
    this.#bytes.copyWithin(0, from, this.#length);
    this.#length -= from;
    const sizes = this.#sizes.map(({ at, ...size }) => ({ ...size, at: Math.max(0, at - from) }));
    const latest = sizes.findLastIndex(({ at }) => at === 0);
    this.#sizes = sizes.slice(Math.max(0, latest));
    this.#isCut = true;
  }
}
