/** RFC 7541 appendix A: index 1 is the first. */
export const STATIC_TABLE: readonly (readonly [name: string, value: string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
];

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
