import type { FromThread } from "./thread-messages.ts";

/**
 * The size of a slab. Slabs are large because each one that the thread returns wakes the event
 * loop.
 */
export const SLAB_BYTES: number = 256 * 1024;
/** Before each part: session, kind, time and length. */
const FRAME_HEAD_BYTES = 20;

/** `resize`: columns and rows, two bytes each. `event`: a code, then its text in UTF-8. */
export type PartKind = "stdout" | "stderr" | "input" | "resize" | "event";
const KINDS: readonly PartKind[] = ["stdout", "stderr", "input", "resize", "event"];

export interface SlabPart {
  readonly handle: number;
  readonly kind: PartKind;
  readonly timeMs: number;
  readonly bytes: Uint8Array;
}

/** Parts of several sessions, copied one after another into one buffer. */
export class Slab {
  readonly buffer: ArrayBuffer;
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  used = 0;

  constructor(buffer: ArrayBuffer = new ArrayBuffer(SLAB_BYTES)) {
    this.buffer = buffer;
    this.#view = new DataView(buffer);
    this.#bytes = new Uint8Array(buffer);
  }

  /** True if a part of this size fits completely. */
  fits(bytes: number): boolean {
    return this.used + FRAME_HEAD_BYTES + bytes <= this.buffer.byteLength;
  }

  /** Copies as much of `part` as fits. Returns the number of bytes copied, 0 if the slab is full. */
  add(handle: number, kind: PartKind, timeMs: number, part: Uint8Array): number {
    const room = this.buffer.byteLength - this.used - FRAME_HEAD_BYTES;
    if (room <= 0) return 0;
    const length = Math.min(room, part.byteLength);
    const view = this.#view;
    view.setUint32(this.used, handle);
    view.setUint32(this.used + 4, KINDS.indexOf(kind));
    view.setFloat64(this.used + 8, timeMs);
    view.setUint32(this.used + 16, length);
    const source = length === part.byteLength ? part : part.subarray(0, length);
    this.#bytes.set(source, this.used + FRAME_HEAD_BYTES);
    this.used += FRAME_HEAD_BYTES + length;
    return length;
  }
}

/** The parts of a slab, in order. Their `bytes` are views of the buffer. */
export function* partsOf(buffer: ArrayBuffer, used: number): Generator<SlabPart> {
  const view = new DataView(buffer);
  for (let at = 0; at < used; ) {
    const length = view.getUint32(at + 16);
    yield {
      handle: view.getUint32(at),
      kind: KINDS[view.getUint32(at + 4)] as PartKind,
      timeMs: view.getFloat64(at + 8),
      bytes: new Uint8Array(buffer, at + FRAME_HEAD_BYTES, length),
    };
    at += FRAME_HEAD_BYTES + length;
  }
}

/** How often slabs are returned while there is work, in milliseconds. */
const RETURN_MS = 2;

/** Returns slabs to the recorder, several at once: each message wakes the event loop. */
export class TakenSlabs {
  readonly #answer: (message: FromThread, transfer: readonly ArrayBuffer[]) => void;
  #slabs = 0;
  #buffers: ArrayBuffer[] = [];
  #bytes = new Map<number, number>();
  #returnedMs = 0;
  #whenIdle: NodeJS.Immediate | undefined;

  constructor(answer: (message: FromThread, transfer: readonly ArrayBuffer[]) => void) {
    this.#answer = answer;
  }

  /** Takes a slab back when its content has been read. `bytes`: what each session had in it. */
  add(buffer: ArrayBuffer, bytes: ReadonlyMap<number, number>): void {
    this.#slabs += 1;
    if (buffer.byteLength === SLAB_BYTES) this.#buffers.push(buffer);
    for (const [handle, count] of bytes) this.#bytes.set(handle, (this.#bytes.get(handle) ?? 0) + count);
    if (performance.now() - this.#returnedMs >= RETURN_MS) this.#return();
    else this.#whenIdle ??= setImmediate(() => this.#return());
  }

  #return(): void {
    clearImmediate(this.#whenIdle);
    this.#whenIdle = undefined;
    this.#returnedMs = performance.now();
    const [slabs, buffers, bytes] = [this.#slabs, this.#buffers, this.#bytes];
    this.#slabs = 0;
    this.#buffers = [];
    this.#bytes = new Map();
    this.#answer({ kind: "taken", slabs, buffers, bytes: [...bytes] }, buffers);
  }
}
