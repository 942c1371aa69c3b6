/** RFC 7541 section 4.1: what an entry counts besides its name and value. */
export const ENTRY_OVERHEAD_BYTES = 32;

export type HeaderEntry = readonly [name: string, value: string];

/** The entries that a peer's encoder asked to be remembered, newest first. Texts are latin1: a character is a byte. */
export class DynamicTable {
  readonly #entries: HeaderEntry[] = [];
  #bytes = 0;
  #maxBytes: number;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** `index` counts from 0. */
  get(index: number): HeaderEntry | undefined {
    return this.#entries[index];
  }

  /** One that is larger than the table empties it. */
  add(entry: HeaderEntry): void {
    const bytes = bytesOf(entry);
    this.#evictTo(this.#maxBytes - bytes);
    if (bytes > this.#maxBytes) return;
    this.#entries.unshift(entry);
    this.#bytes += bytes;
  }

  resize(maxBytes: number): void {
    this.#maxBytes = maxBytes;
    this.#evictTo(maxBytes);
  }

  #evictTo(bytes: number): void {
    while (this.#bytes > bytes) {
      const oldest = this.#entries.pop();
      if (oldest === undefined) return;
      this.#bytes -= bytesOf(oldest);
    }
  }
}

export function bytesOf([name, value]: HeaderEntry): number {
  return name.length + value.length + ENTRY_OVERHEAD_BYTES;
}
