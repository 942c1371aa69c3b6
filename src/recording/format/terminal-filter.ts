const ESC = "\u001b";
/** Characters of an escape sequence. Past it the sequence is dropped, and what follows is text. */
const MAX_SEQUENCE = 4_096;

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
    for (const character of text) shown += this.#take(character);
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
