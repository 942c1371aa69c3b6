import type { HeaderLine, HeaderList } from "./header-list.ts";

/** A line that is written at the place of the first received one, or after all of them. */
interface OwnLine {
  readonly line: HeaderLine;
  /** Absent: received lines of that name stay. */
  readonly replacedName: string | undefined;
  isPlaced: boolean;
}

/** A set of header names in any case. Most other names are told apart without lower-casing them. */
export class HeaderNames {
  readonly #names: ReadonlySet<string>;
  readonly #shapes = new Uint8Array(1 << 10);

  /** `names` are in lower case. */
  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    for (const name of this.#names) this.#shapes[shapeOf(name)] = 1;
  }

  has(name: string): boolean {
    return this.mayHave(name) && this.#names.has(name.toLowerCase());
  }

  /** False for most names that are not in the set. `_` and `-` count alike. */
  mayHave(name: string): boolean {
    return this.#shapes[shapeOf(name)] === 1;
  }
}

/** The first letter in any case, and the length. */
function shapeOf(name: string): number {
  return ((name.charCodeAt(0) & 31) << 5) | (name.length & 31);
}

/**
 * Changes to the headers of one message, collected first and applied by `lines` in one pass. Drops
 * concern received lines only, so a peer's Connection header cannot remove a line of ours.
 */
export class HeaderEdit {
  readonly #list: HeaderList;
  readonly #flat: readonly string[] | undefined;
  readonly #dropped: HeaderNames[] = [];
  readonly #tests: ((name: string) => boolean)[] = [];
  readonly #own: OwnLine[] = [];
  /** A bit for each length, modulo 32, of a name in `#own` that replaces received lines. */
  #replacedLengths = 0;

  /** `received`: a list, or Node's flat form, as in `rawHeaders`. */
  constructor(received: HeaderList | readonly string[]) {
    this.#flat = typeof received[0] === "string" ? (received as readonly string[]) : undefined;
    this.#list = this.#flat === undefined ? (received as HeaderList) : [];
  }

  /** Drops received lines with these names. */
  drop(names: HeaderNames): void {
    this.#dropped.push(names);
  }

  /** Drops received lines for whose name, as received, the test is true. */
  dropIf(test: (name: string) => boolean): void {
    this.#tests.push(test);
  }

  /** Writes one line in place of all received ones with that name, or after the others. */
  set(name: string, value: string): void {
    this.#own.push({ line: [name, value], replacedName: name.toLowerCase(), isPlaced: false });
    this.#replacedLengths |= 1 << name.length;
  }

  /** Writes a line after the others. */
  add(name: string, value: string): void {
    this.#own.push({ line: [name, value], replacedName: undefined, isPlaced: false });
  }

  /** True if the result has a line with that name, given in lower case. */
  has(lowerName: string): boolean {
    for (const { line } of this.#own) if (isNamed(line[0], lowerName)) return true;
    return !this.#drops(lowerName) && this.#indexOf(lowerName, 0) >= 0;
  }

  /** The values of received lines with that name, given in lower case, unless they are dropped. */
  received(lowerName: string): string[] {
    const values: string[] = [];
    if (this.#drops(lowerName)) return values;
    for (let at = this.#indexOf(lowerName, 0); at >= 0; at = this.#indexOf(lowerName, at + 1)) {
      values.push(this.#flat === undefined ? (this.#list[at]?.[1] ?? "") : (this.#flat[2 * at + 1] ?? ""));
    }
    return values;
  }

  lines(): HeaderLine[] {
    const lines: HeaderLine[] = [];
    for (const own of this.#own) own.isPlaced = false;
    const flat = this.#flat;
    if (flat === undefined) {
      for (const line of this.#list) if (this.#keeps(line[0], lines)) lines.push(line);
    } else {
      for (let index = 0; index + 1 < flat.length; index += 2) {
        const name = flat[index] as string;
        if (this.#keeps(name, lines)) lines.push([name, flat[index + 1] as string]);
      }
    }
    for (const { line, isPlaced } of this.#own) if (!isPlaced) lines.push(line);
    return lines;
  }

  /** False if the line is dropped, or replaced: then its replacement is in `lines`. */
  #keeps(name: string, lines: HeaderLine[]): boolean {
    if (this.#drops(name)) return false;
    if ((this.#replacedLengths & (1 << name.length)) === 0) return true;
    for (const own of this.#own) {
      if (own.replacedName === undefined || !isNamed(name, own.replacedName)) continue;
      if (!own.isPlaced) lines.push(own.line);
      own.isPlaced = true;
      return false;
    }
    return true;
  }

  #drops(name: string): boolean {
    for (const names of this.#dropped) if (names.has(name)) return true;
    for (const test of this.#tests) if (test(name)) return true;
    return false;
  }

  #indexOf(lowerName: string, from: number): number {
    const flat = this.#flat;
    const count = flat === undefined ? this.#list.length : flat.length >> 1;
    for (let index = from; index < count; index++) {
      const name = flat === undefined ? this.#list[index]?.[0] : flat[2 * index];
      if (name !== undefined && isNamed(name, lowerName)) return index;
    }
    return -1;
  }
}

function isNamed(name: string, lowerName: string): boolean {
  return name.length === lowerName.length && name.toLowerCase() === lowerName;
}
