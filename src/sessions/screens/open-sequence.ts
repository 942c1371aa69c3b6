const ESC = 0x1b;
/** Bytes of an unfinished escape sequence. Past it a viewer's terminal ignores the rest of the sequence. */
const MAX_OPEN_SEQUENCE = 4_096;

type State = "ground" | "escape" | "csi" | "string";

/**
 * Finds the unfinished escape sequence at the end of a terminal's output, wherever chunks are cut.
 * Ignores unfinished characters.
 */
export class OpenSequence {
  #state: State = "ground";
  #open: number[] = [];
  /** The last byte was C2, with which a C1 control begins. */
  #mayBeC1 = false;

  push(bytes: Uint8Array): void {
    for (const byte of bytes) this.#take(byte);
  }

  /** The bytes of the unfinished sequence; empty if there is none. */
  get bytes(): Uint8Array {
    // An application program command: terminals ignore it, and so the rest of the sequence.
    return Uint8Array.from(this.#open.length > MAX_OPEN_SEQUENCE ? [ESC, 0x5f] : this.#open);
  }

  #take(byte: number): void {
    const isC1 = this.#mayBeC1 && byte >= 0x80 && byte <= 0x9f;
    this.#mayBeC1 = byte === 0xc2;
    if (isC1) this.#c1(byte);
    else if (byte === ESC) this.#begin("escape", [byte]);
    else if (this.#state === "ground") return;
    else if (byte === 0x18 || byte === 0x1a) this.#end();
    else {
      if (this.#open.length <= MAX_OPEN_SEQUENCE) this.#open.push(byte);
      if (this.#state === "escape") this.#escape(byte);
      // Controls within a sequence take effect, and the sequence continues.
      else if (this.#state === "csi" ? byte >= 0x40 && byte < 0x7f : byte === 0x07) this.#end();
    }
  }

  #escape(byte: number): void {
    if (byte === 0x5b) this.#state = "csi";
    // OSC, DCS, SOS, PM, APC.
    else if ([0x5d, 0x50, 0x58, 0x5e, 0x5f].includes(byte)) this.#state = "string";
    else if (byte >= 0x30) this.#end();
  }

  #c1(code: number): void {
    if (code === 0x9b) this.#begin("csi", [ESC, 0x5b]);
    else if ([0x90, 0x98, 0x9d, 0x9e, 0x9f].includes(code)) this.#begin("string", [ESC, code - 0x40]);
    else this.#end();
  }

  #begin(state: State, open: number[]): void {
    this.#state = state;
    this.#open = open;
  }

  #end(): void {
    this.#begin("ground", []);
  }
}
