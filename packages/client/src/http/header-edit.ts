import type { FieldLines } from "@sluice/protocols/http1";
import { type HeaderLine, type HeaderList, isNamed } from "./header-list.ts";

/** A line that is written at the place of the first received one, or after all of them. */
interface OwnLine {
  readonly name: string;
  readonly value: string;
  /** Absent: received lines of that name stay. */
  replacedName: string | undefined;
  isPlaced: boolean;
  next: OwnLine | undefined;
}

interface Dropped {
  readonly names: Pick<HeaderNames, "has">;
  readonly before: Dropped | undefined;
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
  // Both are linked, for an array that grows has room for 17.
  #dropped: Dropped | undefined;
  #own: OwnLine | undefined;
  #lastOwn: OwnLine | undefined;
  /** A bit for each length, modulo 32, of a name in `#own` that replaces received lines. */
  #replacedLengths = 0;

  /** `received`: a list, or flat lines as parsers yield them. */
  constructor(received: HeaderList | FieldLines) {
    this.#received = received;
    this.#step = typeof received[0] === "string" ? 2 : 1;
  }

  /** Drops received lines with these names. */
  drop(names: Pick<HeaderNames, "has">): void {
    this.#dropped = { names, before: this.#dropped };
  }

  /** Drops received lines for whose name, as received, the test is true. */
  dropIf(test: (name: string) => boolean): void {
    this.drop({ has: test });
  }

  /** Writes one line in place of all received ones with that name, or after the others. */
  set(name: string, value: string): void {
    this.add(name, value);
    (this.#lastOwn as OwnLine).replacedName = name.toLowerCase();
    this.#replacedLengths |= 1 << name.length;
  }

  /** Writes a line after the others. */
  add(name: string, value: string): void {
    const own: OwnLine = { name, value, replacedName: undefined, isPlaced: false, next: undefined };
    if (this.#lastOwn === undefined) this.#own = own;
    else this.#lastOwn.next = own;
    this.#lastOwn = own;
  }

  /** True if the result has a line with that name, given in lower case. */
  has(lowerName: string): boolean {
    for (let own = this.#own; own !== undefined; own = own.next)
      if (isNamed(own.name, lowerName)) return true;
    const received = this.#received;
    for (let at = 0; at < received.length; at += this.#step) {
      const name = textAt(received, at, 0);
      if (isNamed(name, lowerName) && !this.#drops(name)) return true;
    }
    return false;
  }

  /** The values of received lines with that name, given in lower case, unless they are dropped. */
  received(lowerName: string): readonly string[] {
    let values: string[] | undefined;
    const received = this.#received;
    for (let at = 0; at < received.length; at += this.#step) {
      const name = textAt(received, at, 0);
      if (!isNamed(name, lowerName) || this.#drops(name)) continue;
      // Most names occur once, and an array that grows has room for 17.
      if (values === undefined) values = [textAt(received, at, 1)];
      else values.push(textAt(received, at, 1));
    }
    return values ?? [];
  }

  /** Applies the edit: visits the resulting lines in order. */
  forEachLine(visit: (name: string, value: string) => void): void {
    for (let own = this.#own; own !== undefined; own = own.next) own.isPlaced = false;
    const received = this.#received;
    for (let at = 0; at < received.length; at += this.#step) {
      const name = textAt(received, at, 0);
      if (this.#drops(name)) continue;
      const own = this.#replacementOf(name);
      if (own === undefined) visit(name, textAt(received, at, 1));
      else if (!own.isPlaced) {
        own.isPlaced = true;
        visit(own.name, own.value);
      }
    }
    for (let own = this.#own; own !== undefined; own = own.next)
      if (!own.isPlaced) visit(own.name, own.value);
  }

  lines(): HeaderLine[] {
    const lines: HeaderLine[] = [];
    this.forEachLine((name, value) => {
      lines.push([name, value]);
    });
    return lines;
  }

  #replacementOf(name: string): OwnLine | undefined {
    if ((this.#replacedLengths & (1 << name.length)) === 0) return undefined;
    for (let own = this.#own; own !== undefined; own = own.next)
      if (own.replacedName !== undefined && isNamed(name, own.replacedName)) return own;
    return undefined;
  }

  #drops(name: string): boolean {
    for (let each = this.#dropped; each !== undefined; each = each.before)
      if (each.names.has(name)) return true;
    return false;
  }
}

/** A line's name, or its value. */
function textAt(lines: HeaderList | FieldLines, at: number, part: 0 | 1): string {
  const line = lines[at] as HeaderLine | string;
  return typeof line === "string" ? (lines[at + part] as string) : line[part];
}
