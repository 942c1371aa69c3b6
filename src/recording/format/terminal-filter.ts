const ESC = "\u001b";
/** Characters of an escape sequence. Past it the sequence is dropped, and what follows is text. */
const MAX_SEQUENCE = 4_096;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const UNSAFE = /[\x00-\x07\x0e-\x1f\x7f-\x9f]/g;

/** A whole sequence of colours or cursor moves. `isHarmless` accepts each, but takes longer. */
const COMMON = new RegExp(`${ESC}\\[[\\d;:]{0,32}[A-HJKm]`, "y");

type State = "text" | "escape" | "csi" | "string" | "charset";

/**
 * Makes recorded output harmless for the replaying terminal. Keeps text, colours, cursor and screen;
 * drops whatever makes a terminal answer, copy, open or rename. Sequences may be cut anywhere.
 */
export class TerminalFilter {
  // Undoes what it lets through, in case the output was cut short: alternate screen, colours,
  // insert mode, wrap, character set, scroll region (which would move the cursor), cursor.
  static readonly RESET =
    "\u001b[?2026l\u001b[?1049l\u001b[0m\u001b[4l\u001b[?7h\u001b(B\u001b7\u001b[r\u001b8\u001b[?25h";

  #state: State = "text";
  #sequence = "";

  push(text: string): string {
    let shown = "";
    for (let at = 0; at < text.length; ) {
      if (this.#state === "text") {
        UNSAFE.lastIndex = at;
        const end = UNSAFE.test(text) ? UNSAFE.lastIndex - 1 : text.length;
        shown += text.slice(at, end);
        if (end === text.length) break;
        at = end;
        COMMON.lastIndex = at;
        if (COMMON.test(text)) {
          shown += text.slice(at, COMMON.lastIndex);
          at = COMMON.lastIndex;
          continue;
        }
      }
      const character = String.fromCodePoint(text.codePointAt(at) as number);
      shown += this.#take(character);
      at += character.length;
    }
    return shown;
  }

  #take(character: string): string {
    const code = character.codePointAt(0) as number;
    // ESC aborts any sequence and starts another. The `ESC \\` that ends a string is such a sequence,
    // and is dropped.
    if (character === ESC) {
      this.#state = "escape";
      this.#sequence = ESC;
      return "";
    }
    if (this.#state === "text") return this.#text(character, code);
    // CAN and SUB abort any sequence.
    if (code === 0x18 || code === 0x1a) return this.#end("");
    this.#sequence += character;
    if (this.#sequence.length > MAX_SEQUENCE) return this.#end("");
    if (this.#state === "string") return code === 0x07 || code === 0x9c ? this.#end("") : "";
    if (code < 0x20) return this.#end("");
    if (code >= 0x80) {
      this.#end("");
      return this.#text(character, code);
    }
    if (this.#state === "escape") return this.#escape(character);
    if (this.#state === "charset") return code < 0x30 ? "" : this.#end(code < 0x7f ? this.#sequence : "");
    return code < 0x40 ? "" : this.#end(isHarmless(this.#sequence) ? this.#sequence : "");
  }

  #text(character: string, code: number): string {
    // ENQ makes a terminal answer; SO and SI switch its character set; C1 controls begin sequences.
    const isControl = code < 0x20 || code === 0x7f;
    if (isControl) return "\t\n\r\b\u000b\u000c".includes(character) ? character : "";
    return code >= 0x80 && code <= 0x9f ? this.#c1(code) : character;
  }

  #c1(code: number): string {
    if (code === 0x9b) {
      this.#state = "csi";
      this.#sequence = `${ESC}[`;
    } else if ([0x90, 0x98, 0x9d, 0x9e, 0x9f].includes(code)) this.#state = "string";
    return "";
  }

  #escape(character: string): string {
    if (character === "[") this.#state = "csi";
    // OSC, DCS, SOS, PM, APC: titles, clipboard, links, requests.
    else if ("]PX^_".includes(character)) this.#state = "string";
    else if ("()*+".includes(character)) this.#state = "charset";
    else return this.#end("78DEHM".includes(character) ? this.#sequence : "");
    return "";
  }

  #end(shown: string): string {
    this.#state = "text";
    this.#sequence = "";
    return shown;
  }
}

/** Modes that only affect the display: origin, wrap, cursor, alternate screen, synchronised output. */
const MODES = new Set(["6", "7", "12", "25", "47", "1047", "1048", "1049", "2026"]);

function isHarmless(sequence: string): boolean {
  const final = sequence.at(-1) as string;
  const parameters = sequence.slice(2, -1);
  // Apart from MODES, private parameters and intermediate bytes occur only in requests and settings.
  if (final === "h" || final === "l") {
    if (parameters === "4") return true;
    return (
      parameters.startsWith("?") &&
      parameters
        .slice(1)
        .split(";")
        .every((mode) => MODES.has(mode))
    );
  }
  return /^[\d;:]*$/.test(parameters) && "@ABCDEFGHIJKLMPSTXZ`abdefgmrsu".includes(final);
}

/** Characters of a line that later output may still change. Past it the line is written as it stands. */
const MAX_CHANGING_LINE = 2_048;

/** Controls that change a line. A `TerminalFilter` gives whole sequences only. */
const ACTS = new RegExp(`\r\n|[\b\n\v\f\r]|${ESC}(?:\\[([^@-~]*)([@-~])|[()*+][^0-~]*.|.)`, "g");
const WIDE =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Emoji_Presentation}\uff01-\uff60]/u;

/**
 * Makes lines of text of what a `TerminalFilter` passes on. Follows the cursor within a line, as
 * shells edit theirs; a carriage return begins another, so that output hides none.
 */
export class TextLines {
  /** The line that is not written yet, while the cursor is at its end. */
  #line = "";
  /** Its columns, once the cursor was elsewhere. A wide character has an empty second one. */
  #cells: string[] | undefined;
  #column = 0;
  #isReturned = false;
  #isPartlyWritten = false;

  push(text: string): string {
    let written = "";
    for (let at = 0; at < text.length; at = ACTS.lastIndex) {
      ACTS.lastIndex = at;
      const act = ACTS.exec(text);
      const end = act?.index ?? text.length;
      if (end > at) written += this.#print(text.slice(at, end));
      if (act === null) break;
      const [found, parameters = "", final = found] = act;
      if (found === "\r") this.#isReturned = true;
      else if (final === "\b") this.#move(-1);
      else if (found.startsWith(ESC)) this.#change(final, parameters);
      else written += this.#endLine();
    }
    return written;
  }

  /** The last line, if no line feed ended it. */
  end(): string {
    return this.#take();
  }

  #print(text: string): string {
    const before = this.#isReturned && this.#hasText ? this.#endLine() : "";
    this.#isReturned = false;
    if (this.#cells === undefined) this.#line += text;
    else for (const character of text) this.#put(this.#cells, character);
    if ((this.#cells ?? this.#line).length <= MAX_CHANGING_LINE) return before;
    this.#isPartlyWritten = true;
    return before + this.#take();
  }

  get #hasText(): boolean {
    return this.#isPartlyWritten || this.#line !== "" || this.#cells !== undefined;
  }

  #put(cells: string[], character: string): void {
    while (cells.length < this.#column) cells.push(" ");
    if (/^\p{M}/u.test(character) && this.#column > 0) {
      cells[this.#column - 1] += character;
      return;
    }
    const columns = WIDE.test(character) ? [character, ""] : [character];
    cells.splice(this.#column, columns.length, ...columns);
    this.#column += columns.length;
  }

  #move(columns: number): void {
    this.#open();
    this.#column = Math.max(0, Math.min(this.#column + columns, MAX_CHANGING_LINE));
  }

  /** The columns, with the cursor where it is. */
  #open(): string[] {
    if (this.#cells === undefined) {
      const [line, cells] = [this.#line, []];
      this.#line = "";
      this.#column = 0;
      this.#cells = cells;
      for (const character of line) this.#put(cells, character);
    }
    if (this.#isReturned) this.#column = 0;
    this.#isReturned = false;
    return this.#cells;
  }

  #change(final: string, parameters: string): void {
    const count = Math.max(1, Math.min(Number.parseInt(parameters, 10) || 1, MAX_CHANGING_LINE));
    // After a carriage return nothing is erased: the redrawn line overwrites the old one.
    if (final === "K" && !this.#isReturned && /^0?$/.test(parameters)) this.#open().splice(this.#column);
    else if (final === "C" || final === "D") this.#move(final === "C" ? count : -count);
    else if (final === "G") {
      this.#open();
      this.#column = count - 1;
    } else if (final === "P") this.#open().splice(this.#column, count);
    else if (final === "X" || final === "@") {
      const cells = this.#open();
      while (cells.length < this.#column) cells.push(" ");
      cells.splice(this.#column, final === "X" ? count : 0, ...Array<string>(count).fill(" "));
      cells.splice(MAX_CHANGING_LINE);
    }
  }

  #endLine(): string {
    const line = this.#take();
    this.#isReturned = false;
    this.#isPartlyWritten = false;
    return `${line}\n`;
  }

  #take(): string {
    const line = this.#cells?.join("") ?? this.#line;
    this.#line = "";
    this.#cells = undefined;
    return line;
  }
}
