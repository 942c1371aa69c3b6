import type { FieldPath } from "./yaml-field-places.ts";

interface PlainYaml {
  /** Plain JSON-like data, with at least one field. */
  readonly value: Readonly<Record<string, unknown>>;
  /** Line and column, from 1, of the field or of its nearest existing parent. */
  placeOf(path: FieldPath): { readonly line: number; readonly column: number };
}

interface Line {
  readonly number: number;
  readonly indent: number;
  /** Without the indent and trailing spaces. */
  readonly text: string;
}

/** Levels of a kubeconfig; most have less than 10. Past it, the YAML library reads the file. */
const MAX_PLAIN_DEPTH = 20;
const KEY = /^([A-Za-z][\w./-]{0,127}):(?: +(.+))?$/;
const ITEM = /^-( +)(.+)$/;
/** The first characters of a word that is neither a number nor begins YAML's syntax. */
const WORD = /^(?:[A-Za-z0-9/]|-[A-Za-z-])/;
/** YAML reads these as other values than texts, each in some of its spellings. */
const SPECIAL = /^(?:null|true|false)$/i;
const QUOTED = /^(?:"([^"\\]*)"|'([^']*)')$/;
/** A field in `{ cluster: kind, user: admin }`. */
const FLOW_FIELD = /^([A-Za-z][\w./-]{0,127}): ([A-Za-z/][\w./@-]*)$/;
const SPECIAL_VALUES: ReadonlyMap<string, boolean | null> = new Map([
  ["null", null],
  ["true", true],
  ["false", false],
]);

/**
 * Reads a kubeconfig as kubectl and people write it, without the YAML library, whose start takes
 * longer than a small command. Undefined for texts that the library might read otherwise, or refuse.
 */
export function plainYaml(text: string): PlainYaml | undefined {
  if (/[^\n\x20-\x7e]/.test(text)) return undefined;
  return new PlainReader(linesOf(text)).read();
}

/** Leaves out empty lines, comments, and the mark before the first document. */
function linesOf(text: string): Line[] {
  const lines: Line[] = [];
  for (const [index, whole] of text.split("\n").entries()) {
    const line = whole.trim();
    if (line === "" || line.startsWith("#")) continue;
    if (whole === "---" && lines.length === 0) continue;
    lines.push({ number: index + 1, indent: whole.length - whole.trimStart().length, text: line });
  }
  return lines;
}

class PlainReader {
  readonly #lines: Line[];
  /** The lines of the fields of each map, and of the items of each list. */
  readonly #places = new Map<unknown, Map<string | number, Line>>();
  #at = 0;
  #isPlain = true;

  constructor(lines: Line[]) {
    this.#lines = lines;
  }

  read(): PlainYaml | undefined {
    const [first] = this.#lines;
    if (first === undefined || ITEM.test(first.text)) return undefined;
    const value = this.#map(first.indent, 0);
    if (!this.#isPlain || this.#at < this.#lines.length) return undefined;
    const placeOf = (path: FieldPath) => {
      const { number, indent } = this.#lineOf(path, value) ?? first;
      return { line: number, column: indent + 1 };
    };
    return { value, placeOf };
  }

  #lineOf(path: FieldPath, root: unknown): Line | undefined {
    let [holder, found]: [unknown, Line | undefined] = [root, undefined];
    for (const part of path) {
      const line = this.#places.get(holder)?.get(Array.isArray(holder) ? part : String(part));
      if (line === undefined) break;
      found = line;
      holder = (holder as Readonly<Record<string | number, unknown>>)[part];
    }
    return found;
  }

  #map(indent: number, depth: number): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    const places = new Map<string | number, Line>();
    this.#places.set(map, places);
    for (let line = this.#lineAt(indent); line !== undefined; line = this.#lineAt(indent)) {
      const [, key, rest] = KEY.exec(line.text) ?? [];
      if (key === undefined || SPECIAL.test(key) || places.has(key) || depth > MAX_PLAIN_DEPTH)
        this.#giveUp();
      else {
        places.set(key, line);
        this.#at += 1;
        map[key] = rest === undefined ? this.#below(indent, depth) : this.#scalar(rest, line);
      }
    }
    return map;
  }

  /** Words of a map in one line. `line` ends with the map. */
  #flowMap(text: string, line: Line): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    const places = new Map<string | number, Line>();
    this.#places.set(map, places);
    const start = text.startsWith("{ ") ? 2 : 1;
    const end = text.endsWith(" }") ? -2 : -1;
    let indent = line.indent + line.text.length - text.length + start;
    for (const field of text.slice(start, end).split(", ")) {
      const [, key, value] = FLOW_FIELD.exec(field) ?? [];
      if (key === undefined || value === undefined || places.has(key)) this.#giveUp();
      else if (SPECIAL.test(key) || SPECIAL.test(value)) this.#giveUp();
      else {
        places.set(key, { ...line, indent });
        map[key] = value;
      }
      indent += field.length + 2;
    }
    return map;
  }

  #list(indent: number, depth: number): unknown[] {
    const list: unknown[] = [];
    const places = new Map<string | number, Line>();
    this.#places.set(list, places);
    for (let line = this.#lineAt(indent); line !== undefined; line = this.#lineAt(indent)) {
      const [, spaces = "", text] = ITEM.exec(line.text) ?? [];
      // The list of a map's field may stand in the map's own column, and ends with its next field.
      if (text === undefined && list.length > 0) break;
      if (text === undefined || depth > MAX_PLAIN_DEPTH) {
        this.#giveUp();
        break;
      }
      const item = { number: line.number, indent: indent + 1 + spaces.length, text };
      places.set(list.length, item);
      if (KEY.test(text)) {
        this.#lines[this.#at] = item;
        list.push(this.#map(item.indent, depth + 1));
      } else {
        this.#at += 1;
        list.push(this.#scalar(text, item));
      }
    }
    return list;
  }

  /** The value of a field whose own line has none. */
  #below(indent: number, depth: number): unknown {
    const line = this.#lines[this.#at];
    if (line === undefined || line.indent < indent) return null;
    if (ITEM.test(line.text)) return this.#list(line.indent, depth + 1);
    return line.indent === indent ? null : this.#map(line.indent, depth + 1);
  }

  /** The next line, unless a map or list in this column ends before it. */
  #lineAt(indent: number): Line | undefined {
    const line = this.#lines[this.#at];
    if (line === undefined || line.indent < indent) return undefined;
    // A deeper line continues a word, or belongs to nothing.
    if (line.indent > indent) this.#giveUp();
    return line.indent > indent ? undefined : line;
  }

  /** `line` ends with the text. */
  #scalar(text: string, line: Line): unknown {
    if (text === "{}") return {};
    if (text === "[]") return [];
    if (text.startsWith("{") && text.endsWith("}")) return this.#flowMap(text, line);
    const quoted = QUOTED.exec(text);
    if (quoted !== null) return quoted[1] ?? quoted[2];
    const special = SPECIAL_VALUES.get(text);
    if (special !== undefined) return special;
    const isSyntax = text.endsWith(":") || text.includes(": ") || text.includes(" #");
    const isNumber = /^\d/.test(text) && !Number.isNaN(Number(text));
    if (!WORD.test(text) || isSyntax || isNumber || SPECIAL.test(text)) this.#giveUp();
    return text;
  }

  #giveUp(): void {
    this.#isPlain = false;
    this.#at = this.#lines.length;
  }
}
