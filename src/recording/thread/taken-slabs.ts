import { SLAB_BYTES } from "./slab.ts";
import type { FromThread } from "./thread-messages.ts";

/** While there is work, slabs are returned this often, in milliseconds. */
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

  /** Takes a slab that holds these bytes of each session, of which nothing is read any more. */
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
