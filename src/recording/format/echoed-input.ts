import { TextStream } from "./text-stream.ts";

/** How long a typed line waits for its echo, in milliseconds. Then it counts as hidden. */
const ECHO_MS = 1_000;
/** Characters of a typed or displayed line. Past it input is hidden. */
const MAX_LINE_CHARACTERS = 4_096;
/** Typed lines that wait for their echo. Past it input is hidden. */
const MAX_WAITING_LINES = 16;

/**
 * Finds typed lines that a terminal echoed: it showed their text at the end of a line after they
 * were typed. Of other lines it only reports that they exist. Pure.
 */
export class EchoedInput {
  readonly #text = new TextStream();
  readonly #screen = new ShownLine();
  /** The typed line's characters. */
  #typed: string[] = [];
  /** The line contains keys whose effect is not tracked, such as Tab. */
  #isUnclear = false;
  #waiting: { readonly text: readonly string[]; readonly atMs: number }[] = [];
  #isHidden = false;

  /** Call with what the client typed. */
  type(bytes: Uint8Array, timeMs: number): void {
    for (const character of this.#text.push(bytes)?.bytes.toString("utf8") ?? "")
      this.#key(character, timeMs);
  }

  /** Call with what the terminal showed. Returns the typed lines that it echoed. */
  show(text: string, timeMs: number): string[] {
    const echoed: string[] = [];
    this.#screen.push(text, () => {
      if (this.#waiting.length === 0) return;
      const fresh = this.#waiting.filter(({ atMs }) => timeMs - atMs <= ECHO_MS);
      if (fresh.length < this.#waiting.length) this.#isHidden = true;
      const end = this.#screen.end;
      const found = fresh.findIndex((each) => this.#screen.endsWith(each.text, end));
      if (found > 0) this.#isHidden = true;
      const hit = fresh[found];
      if (hit !== undefined) echoed.push(hit.text.join(""));
      this.#waiting = fresh.slice(found + 1);
    });
    return echoed;
  }

  /** Whether input was hidden since the last call. */
  takeHidden(): boolean {
    const isHidden = this.#isHidden;
    this.#isHidden = false;
    return isHidden;
  }

  /** Call when the session ends: lines that still wait count as hidden. */
  end(): void {
    if (this.#waiting.length > 0 || this.#typed.length > 0 || this.#isUnclear) this.#isHidden = true;
    this.#waiting = [];
    this.#typed = [];
    this.#isUnclear = false;
  }

  #key(character: string, timeMs: number): void {
    const code = character.codePointAt(0) as number;
    if (character === "\r" || character === "\n") this.#enter(timeMs);
    else if (code === 0x7f || code === 0x08) this.#typed.pop();
    else if (code === 0x03) this.#giveUp();
    else if (code === 0x15) this.#typed = [];
    else if (code === 0x17) eraseLastWord(this.#typed);
    else if (code < 0x20 || (code >= 0x80 && code <= 0x9f)) this.#isUnclear = true;
    else if (this.#typed.length >= MAX_LINE_CHARACTERS) this.#isUnclear = true;
    else this.#typed.push(character);
  }

  /** Ctrl-C: programs drop the line, even if an earlier key made it unclear. */
  #giveUp(): void {
    this.#isHidden = true;
    this.#typed = [];
    this.#isUnclear = false;
  }

  #enter(atMs: number): void {
    const text = this.#typed;
    eraseBlanks(text);
    const isUnclear = this.#isUnclear || this.#waiting.length >= MAX_WAITING_LINES;
    this.#typed = [];
    this.#isUnclear = false;
    if (isUnclear) this.#isHidden = true;
    else if (text.length > 0) this.#waiting.push({ text, atMs });
  }
}

const SPACE = 0x20;

/**
 * The line with the terminal's cursor, as a line editor's control sequences change it. Output of
 * any kind costs about the same per byte: all sessions share the thread that reads it.
 */
class ShownLine {
  /** A code point in each cell. */
  readonly #cells = new Uint32Array(MAX_LINE_CHARACTERS);
  #length = 0;
  #cursor = 0;
  #sequence: string | undefined;

  /** Calls `onLine` at the end of each line. */
  push(text: string, onLine: () => void): void {
    for (const character of text) {
      if (this.#sequence !== undefined) this.#inSequence(character);
      else if (character === "\u001b") this.#sequence = "";
      else if (character === "\n") {
        onLine();
        this.#length = this.#cursor = 0;
      } else if (character === "\r") this.#cursor = 0;
      else if (character === "\b") this.#cursor = Math.max(0, this.#cursor - 1);
      else if (character >= " " && this.#cursor < MAX_LINE_CHARACTERS) this.#put(character);
    }
  }

  /** How many cells the line has without the blanks at its end. */
  get end(): number {
    let end = this.#length;
    while (end > 0 && isBlank(this.#cells[end - 1] as number)) end -= 1;
    return end;
  }

  /** Whether the line ends with these characters at `end`. */
  endsWith(text: readonly string[], end: number): boolean {
    const start = end - text.length;
    if (start < 0) return false;
    // From behind, where most lines differ at once.
    return text.findLastIndex((character, at) => character.codePointAt(0) !== this.#cells[start + at]) === -1;
  }

  #put(character: string): void {
    if (this.#length < this.#cursor) this.#cells.fill(SPACE, this.#length, this.#cursor);
    this.#cells[this.#cursor] = character.codePointAt(0) as number;
    this.#cursor += 1;
    this.#length = Math.max(this.#length, this.#cursor);
  }

  #inSequence(character: string): void {
    const sequence = (this.#sequence ?? "") + character;
    this.#sequence = sequence;
    if (sequence.length > MAX_LINE_CHARACTERS) this.#sequence = undefined;
    else if (sequence.startsWith("]")) {
      if (character === "\u0007" || sequence.endsWith("\u001b\\")) this.#sequence = undefined;
    } else if (sequence === "(" || sequence === ")") return;
    else if (!sequence.startsWith("[")) this.#sequence = undefined;
    else if (sequence.length > 1 && character >= "@" && character <= "~") {
      this.#sequence = undefined;
      this.#control(character, Number(sequence.slice(1, -1)));
    }
  }

  /** Moves the cursor or edits the line. A missing number arrives as 0 and counts as 1. */
  #control(final: string, number: number): void {
    const count = Math.min(Math.max(1, number || 0), MAX_LINE_CHARACTERS);
    if (final === "C") this.#cursor = Math.min(this.#cursor + count, MAX_LINE_CHARACTERS);
    else if (final === "D") this.#cursor = Math.max(0, this.#cursor - count);
    else if (final === "G") this.#cursor = count - 1;
    else if (final === "K" && number === 0) this.#length = Math.min(this.#length, this.#cursor);
    else if (final === "P") this.#delete(count);
    else if (final === "@" && this.#cursor < this.#length) this.#insert(count);
  }

  #delete(count: number): void {
    if (this.#cursor >= this.#length) return;
    this.#cells.copyWithin(this.#cursor, this.#cursor + count, this.#length);
    this.#length = Math.max(this.#cursor, this.#length - count);
  }

  #insert(count: number): void {
    this.#cells.copyWithin(this.#cursor + count, this.#cursor, this.#length);
    this.#cells.fill(SPACE, this.#cursor, this.#cursor + count);
    this.#length = Math.min(this.#length + count, MAX_LINE_CHARACTERS);
  }
}

/** Erases a word as terminals do, with the blanks behind it. */
function eraseLastWord(line: string[]): void {
  eraseBlanks(line);
  while (line.length > 0 && line.at(-1) !== " ") line.pop();
}

function eraseBlanks(line: string[]): void {
  while (line.length > 0 && isBlank(line.at(-1)?.codePointAt(0) as number)) line.pop();
}

/** Of code points that are no C0 controls. */
function isBlank(code: number): boolean {
  return code === SPACE || (code >= 0x80 && /\s/.test(String.fromCodePoint(code)));
}
