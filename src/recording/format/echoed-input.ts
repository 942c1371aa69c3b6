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
  #typed = "";
  /** The line contains keys whose effect is not tracked, such as Tab. */
  #isUnclear = false;
  #waiting: { readonly text: string; readonly atMs: number }[] = [];
  #isHidden = false;

  /** Call with what the client typed. */
  type(bytes: Uint8Array, timeMs: number): void {
    for (const character of this.#text.push(bytes)?.bytes.toString("utf8") ?? "")
      this.#key(character, timeMs);
  }

  /** Call with what the terminal showed. Returns the typed lines that it echoed. */
  show(text: string, timeMs: number): string[] {
    const echoed: string[] = [];
    for (const line of this.#screen.push(text)) {
      const fresh = this.#waiting.filter(({ atMs }) => timeMs - atMs <= ECHO_MS);
      if (fresh.length < this.#waiting.length) this.#isHidden = true;
      const found = fresh.findIndex((each) => line.endsWith(each.text));
      if (found > 0) this.#isHidden = true;
      const hit = fresh[found];
      if (hit !== undefined) echoed.push(hit.text);
      this.#waiting = fresh.slice(found + 1);
    }
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
    if (this.#waiting.length > 0 || this.#typed !== "" || this.#isUnclear) this.#isHidden = true;
    this.#waiting = [];
    this.#typed = "";
    this.#isUnclear = false;
  }

  #key(character: string, timeMs: number): void {
    const code = character.codePointAt(0) as number;
    if (character === "\r" || character === "\n") this.#enter(timeMs);
    else if (code === 0x7f || code === 0x08) this.#typed = Array.from(this.#typed).slice(0, -1).join("");
    else if (code === 0x03) this.#giveUp();
    else if (code === 0x15) this.#typed = "";
    else if (code === 0x17) this.#typed = withoutLastWord(this.#typed);
    else if (code < 0x20 || (code >= 0x80 && code <= 0x9f)) this.#isUnclear = true;
    else if (this.#typed.length >= MAX_LINE_CHARACTERS) this.#isUnclear = true;
    else this.#typed += character;
  }

  /** Ctrl-C: programs drop the line, even if an earlier key made it unclear. */
  #giveUp(): void {
    this.#isHidden = true;
    this.#typed = "";
    this.#isUnclear = false;
  }

  #enter(atMs: number): void {
    const text = this.#typed.trimEnd();
    const isUnclear = this.#isUnclear || this.#waiting.length >= MAX_WAITING_LINES;
    this.#typed = "";
    this.#isUnclear = false;
    if (isUnclear) this.#isHidden = true;
    else if (text !== "") this.#waiting.push({ text, atMs });
  }
}

/** The line with the terminal's cursor, as a line editor's control sequences change it. */
class ShownLine {
  #cells: string[] = [];
  #cursor = 0;
  #sequence: string | undefined;

  /** Returns completed lines without trailing spaces. */
  push(text: string): string[] {
    const lines: string[] = [];
    for (const character of text) {
      if (this.#sequence !== undefined) this.#inSequence(character);
      else if (character === "\u001b") this.#sequence = "";
      else if (character === "\n") {
        lines.push(this.#cells.join("").trimEnd());
        this.#cells = [];
        this.#cursor = 0;
      } else if (character === "\r") this.#cursor = 0;
      else if (character === "\b") this.#cursor = Math.max(0, this.#cursor - 1);
      else if (character >= " " && this.#cursor < MAX_LINE_CHARACTERS) this.#put(character);
    }
    return lines;
  }

  #put(character: string): void {
    while (this.#cells.length < this.#cursor) this.#cells.push(" ");
    this.#cells[this.#cursor] = character;
    this.#cursor += 1;
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
    else if (final === "K" && number === 0) this.#cells.length = Math.min(this.#cells.length, this.#cursor);
    else if (final === "P") this.#cells.splice(this.#cursor, count);
    else if (final === "@" && this.#cursor < this.#cells.length) this.#insert(count);
  }

  #insert(count: number): void {
    const blanks = Array.from({ length: count }, () => " ");
    this.#cells.splice(this.#cursor, 0, ...blanks);
    this.#cells.length = Math.min(this.#cells.length, MAX_LINE_CHARACTERS);
  }
}

/** Erases a word as terminals do, with the blanks behind it. */
function withoutLastWord(line: string): string {
  const kept = line.trimEnd();
  return kept.slice(0, kept.lastIndexOf(" ") + 1);
}
