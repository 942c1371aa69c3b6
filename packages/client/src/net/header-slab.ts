const SLAB_BYTES = 8 * 1024;

/**
 * Allocates frame headers from shared slabs. A full slab is replaced, not reused, because the kernel
 * may not have taken its headers yet; its last view frees it.
 */
class HeaderSlab {
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #used = 0;

  /** Returns `length` bytes (at most SLAB_BYTES) with undefined content. */
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

/** One slab serves every session of the process, since JavaScript runs one at a time. */
export const headerSlab: HeaderSlab = new HeaderSlab();
