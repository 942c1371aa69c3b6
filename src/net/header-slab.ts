const SLAB_BYTES = 8 * 1024;

/**
 * Carves headers of outgoing frames from shared slabs. A header stays untouched until the kernel has taken it: a full slab is
 * replaced, and freed with its last view.
 */
export class HeaderSlab {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #used = 0;

  /** A view of `length` bytes (at most SLAB_BYTES) whose content is undefined. */
  take(length: number): Buffer {
    if (this.#used + length > SLAB_BYTES) {
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      this.#used = 0;
    }
    const view = this.#slab.subarray(this.#used, this.#used + length);
    this.#used += length;
    return view;
  }
}

/** One slab serves every session of the process: JavaScript runs one of them at a time. */
export const headerSlab: HeaderSlab = new HeaderSlab();
