import type { HeaderLine, HeaderList } from "./header-list.ts";

/** A line that is written at the place of the first received one, or after all of them. */
interface OwnLine {
  readonly line: HeaderLine;
  /** Absent: received lines of that name stay. */
  readonly replacedName: string | undefined;
  isPlaced: boolean;
}

const NONE: ReadonlySet<string> = new Set();

/**
 * Changes to the headers of one message, collected first and applied by `lines` in one pass. Drops
 * concern received lines only, so a peer's Connection header cannot remove a line of ours.
 */
export class HeaderEdit {
  readonly #list: HeaderList;
  readonly #flat: readonly string[] | undefined;
  #dropped: ReadonlySet<string>;
  #isDropped: ((lowerName: string) => boolean) | undefined;
  readonly #own: OwnLine[] = [];

  /** `received`: a list, or Node's flat form, as in `rawHeaders`. `dropped`: names in lower case. */
  constructor(received: HeaderList | readonly string[], dropped: ReadonlySet<string> = NONE) {
    this.#flat = typeof received[0] === "string" ? (received as readonly string[]) : undefined;
    this.#list = this.#flat === undefined ? (received as HeaderList) : [];
    this.#dropped = dropped;
  }

  /** Drops received lines with these names, given in lower case. */
  drop(names: ReadonlySet<string>): void {
    this.#dropped = this.#dropped === NONE ? names : new Set([...this.#dropped, ...names]);
  }

  /** Drops received lines for whose name, in lower case, the test is true. */
  dropIf(isDropped: (lowerName: string) => boolean): void {
    const earlier = this.#isDropped;
    this.#isDropped = earlier === undefined ? isDropped : (name) => earlier(name) || isDropped(name);
  }

  /** Writes one line in place of all received ones with that name, or after the others. */
  set(name: string, value: string): void {
    this.#own.push({ line: [name, value], replacedName: name.toLowerCase(), isPlaced: false });
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
    const lowerName = name.toLowerCase();
    if (this.#drops(lowerName)) return false;
    for (const own of this.#own) {
      if (own.replacedName !== lowerName) continue;
      if (!own.isPlaced) lines.push(own.line);
      own.isPlaced = true;
      return false;
    }
    return true;
  }

  #drops(lowerName: string): boolean {
    return this.#dropped.has(lowerName) || this.#isDropped?.(lowerName) === true;
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
