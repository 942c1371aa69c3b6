import type { FieldLines } from "@sluice/protocols/http1";
import { type HeaderLine, type HeaderList, isNamed } from "./header-list.ts";

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

  /**
   * `names` are in lower case. `any-dash`: also with `_` for any of their dashes, which CGI and its
   * successors (WSGI, PHP) read as the same name. For names of few dashes: each doubles the spellings.
   */
  constructor(names: Iterable<string>, spelling: "exact" | "any-dash" = "exact") {
    this.#names = spelling === "exact" ? new Set(names) : new Set([...names].flatMap(spellingsOf));
    for (const name of this.#names) this.#shapes[shapeOf(name)] = 1;
  }

  has(name: string): boolean {
    return this.#shapes[shapeOf(name)] === 1 && this.#names.has(name.toLowerCase());
  }
}

function spellingsOf(name: string): string[] {
  const [first = "", ...rest] = name.split("-");
  return rest.reduce(
    (begun, part) => begun.flatMap((text) => [`${text}-${part}`, `${text}_${part}`]),
    [first],
  );
}

/** The first letter in any case, and the length. */
function shapeOf(name: string): number {
  return ((name.charCodeAt(0) & 31) << 5) | (name.length & 31);
}

/**
 * Changes to a message's headers, applied in one pass as they are written. Drops concern received
 * lines only, so a peer's Connection header cannot remove a line of ours.
 */
export class HeaderEdit {
  readonly #received: HeaderList | FieldLines;
  /** A line's elements in `#received`: one of a list, two of flat lines. */
  readonly #step: 1 | 2;
  readonly #dropped: Pick<HeaderNames, "has">[] = [];
  readonly #own: OwnLine[] = [];
  /** A bit for each length, modulo 32, of a name in `#own` that replaces received lines. */
  #replacedLengths = 0;

  /** `received`: a list, or flat lines as parsers yield them. */
  constructor(received: HeaderList | FieldLines) {
    this.#received = received;
    this.#step = typeof received[0] === "string" ? 2 : 1;
  }

  /** Drops received lines with these names. */
  drop(names: Pick<HeaderNames, "has">): void {
    this.#dropped.push(names);
  }

  /** Drops received lines for whose name, as received, the test is true. */
  dropIf(test: (name: string) => boolean): void {
    this.drop({ has: test });
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
    const received = this.#received;
    for (let at = 0; at < received.length; at += this.#step) {
      const line = received[at] as HeaderLine | string;
      const name = typeof line === "string" ? line : line[0];
      if (isNamed(name, lowerName) && !this.#drops(name)) return true;
    }
    return false;
  }

  /** The values of received lines with that name, given in lower case, unless they are dropped. */
  received(lowerName: string): string[] {
    const values: string[] = [];
    const received = this.#received;
    for (let at = 0; at < received.length; at += this.#step) {
      const line = received[at] as HeaderLine | string;
      const name = typeof line === "string" ? line : line[0];
      if (isNamed(name, lowerName) && !this.#drops(name)) values.push(lineAt(received, at)[1]);
    }
    return values;
  }

  /** Applies the edit: visits the resulting lines in order. */
  forEach(visit: (line: HeaderLine) => void): void {
    for (const own of this.#own) own.isPlaced = false;
    const received = this.#received;
    for (let at = 0; at < received.length; at += this.#step) {
      const line = lineAt(received, at);
      if (this.#drops(line[0])) continue;
      const own = this.#replacementOf(line[0]);
      if (own === undefined) visit(line);
      else if (!own.isPlaced) {
        own.isPlaced = true;
        visit(own.line);
      }
    }
    for (const { line, isPlaced } of this.#own) if (!isPlaced) visit(line);
  }

  lines(): HeaderLine[] {
    const lines: HeaderLine[] = [];
    this.forEach((line) => {
      lines.push(line);
    });
    return lines;
  }

  #replacementOf(name: string): OwnLine | undefined {
    if ((this.#replacedLengths & (1 << name.length)) === 0) return undefined;
    for (const own of this.#own)
      if (own.replacedName !== undefined && isNamed(name, own.replacedName)) return own;
    return undefined;
  }

  #drops(name: string): boolean {
    for (const names of this.#dropped) if (names.has(name)) return true;
    return false;
  }
}

function lineAt(lines: HeaderList | FieldLines, at: number): HeaderLine {
  const line = lines[at] as HeaderLine | string;
  return typeof line === "string" ? [line, lines[at + 1] as string] : line;
}
