/** RFC 7541 section 4.1: every entry counts this many bytes more than its name and value. */
const ENTRY_OVERHEAD_BYTES = 32;

export type HeaderEntry = readonly [name: string, value: string];

/** The entries that the peer's encoder added, newest first. Strings are latin1: one character a byte. */
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

  /** An entry larger than the table empties it. */
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
