const FIRST_LINE = 1_000_000_000;
const LAST_LINE = 9_999_999_999;
/** Ten digits and a line feed. */
export const LINE_BYTES = 11;
const BLOCK_LINES = 1_000;
const BLOCK_BYTES = BLOCK_LINES * LINE_BYTES;
const PREFIX_DIGITS = 7;

/**
 * The output of `seq 1000000000 LAST`: ten digits a line, so that every offset has a known byte.
 * Every container with coreutils or busybox has the command.
 */
export class LineSequence {
  /** A thousand lines; their last three digits never change. */
  readonly #block: Buffer = Buffer.from(
    Array.from({ length: BLOCK_LINES }, (_, line) => `${FIRST_LINE + line}\n`).join(""),
  );
  #blockIndex = 0;

  /** The command for this many bytes, rounded up to whole lines; undefined: the longest possible. */
  static command(byteLength: number | undefined): string[] {
    const last = byteLength === undefined ? LAST_LINE : FIRST_LINE + Math.ceil(byteLength / LINE_BYTES) - 1;
    return ["seq", String(FIRST_LINE), String(last)];
  }

  /** Like SeededStream's. */
  firstWrong(offset: number, part: Uint8Array): number {
    for (let done = 0; done < part.byteLength; ) {
      const at = offset + done;
      this.#select(Math.floor(at / BLOCK_BYTES));
      const expected = this.#block.subarray(at % BLOCK_BYTES);
      const compared = part.subarray(done, done + expected.byteLength);
      if (!expected.subarray(0, compared.byteLength).equals(compared)) {
        return at + expected.findIndex((byte, index) => byte !== compared[index]);
      }
      done += compared.byteLength;
    }
    return -1;
  }

  #select(blockIndex: number): void {
    if (blockIndex === this.#blockIndex) return;
    this.#blockIndex = blockIndex;
    const prefix = Buffer.from(String(FIRST_LINE / BLOCK_LINES + blockIndex), "latin1");
    for (let at = 0; at < BLOCK_BYTES; at += LINE_BYTES) prefix.copy(this.#block, at, 0, PREFIX_DIGITS);
  }
}
