/** In character cells, 0..65535 each. Runtimes ignore a size that contains a zero. */
export interface TerminalSize {
  readonly width: number;
  readonly height: number;
}

/**
 * Bytes of one terminal size, usually about 30. Past it resizing ends, and the session continues.
 */
const DEFAULT_MAX_RESIZE_BYTES = 1024;
const MAX_CELLS = 0xffff;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;

export function encodeResize(size: TerminalSize): Uint8Array {
  return new TextEncoder().encode(`{"Width":${size.width},"Height":${size.height}}\n`);
}

/**
 * Reads sizes from the resize stream: consecutive JSON values that may share or span messages. The
 * first invalid value silently ends resizing, as in Kubernetes.
 */
export class ResizeDecoder {
  readonly #maxBytes: number;
  #value: number[] = [];
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  #isOver = false;

  constructor(maxResizeBytes: number = DEFAULT_MAX_RESIZE_BYTES) {
    this.#maxBytes = maxResizeBytes;
  }

  push(part: Uint8Array): TerminalSize[] {
    const sizes: TerminalSize[] = [];
    for (const byte of part) {
      if (this.#isOver) break;
      if (!this.#take(byte)) continue;
      const size = sizeOf(this.#value);
      this.#value = [];
      if (size === undefined) this.#isOver = true;
      else sizes.push(size);
    }
    return sizes;
  }

  /** True if this byte completes a value. */
  #take(byte: number): boolean {
    if (this.#depth === 0) {
      if (isSpace(byte)) return false;
      if (byte !== OPEN) {
        this.#isOver = true;
        return false;
      }
    }
    if (this.#value.length >= this.#maxBytes) {
      this.#isOver = true;
      this.#value = [];
      return false;
    }
    this.#value.push(byte);
    if (this.#inString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#inString = false;
    } else if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN) this.#depth += 1;
    else if (byte === CLOSE) this.#depth -= 1;
    return this.#depth === 0;
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Like Go's decoder, matches keys in any case and reads absent ones as zero. */
function sizeOf(bytes: readonly number[]): TerminalSize | undefined {
  let value: Record<string, unknown>;
  try {
    value = JSON.parse(new TextDecoder().decode(Uint8Array.from(bytes)));
  } catch {
    return undefined;
  }
  let width: unknown = 0;
  let height: unknown = 0;
  for (const [key, cells] of Object.entries(value)) {
    if (key.toLowerCase() === "width") width = cells;
    if (key.toLowerCase() === "height") height = cells;
  }
  return isCells(width) && isCells(height) ? { width, height } : undefined;
}

function isCells(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_CELLS;
}
