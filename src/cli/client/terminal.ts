import { Transform, type TransformCallback } from "node:stream";
import type { ReadStream } from "node:tty";

const CR = 0x0d;
const LF = 0x0a;
const DOT = 0x2e;

/**
 * Sends every key to the remote terminal. The returned function gives the terminal back.
 * `printsLinesOf`: "a terminal" shows output as it is; of "a pipe" a line feed begins a line.
 */
export function enterRawMode(stdin: ReadStream, printsLinesOf: "a terminal" | "a pipe"): () => void {
  stdin.setRawMode(true);
  // libuv keeps ONLCR, and Node has no switch; editors move down a column by a line feed alone.
  if (printsLinesOf === "a terminal")
    process
      .getBuiltinModule("node:child_process")
      .spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
  const restore = (): void => {
    process.off("exit", restore);
    for (const signal of signals) process.off(signal, onSignal);
    if (!stdin.destroyed) stdin.setRawMode(false);
  };
  const signals = ["SIGTERM", "SIGHUP"] as const;
  const onSignal = (signal: NodeJS.Signals): void => {
    restore();
    process.kill(process.pid, signal);
  };
  for (const signal of signals) process.on(signal, onSignal);
  process.on("exit", restore);
  return restore;
}

const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = {
  "\u0003": "SIGINT",
  "\u001a": "SIGTSTP",
  "\u001c": "SIGQUIT",
};

/**
 * Takes the keys of a terminal that shows foreign output: they would be shown in it, and read by the
 * shell after it. Those of signals act as ever. The returned function gives them back.
 */
export function takeKeys(onKey: (key: string) => void = () => {}): () => void {
  const { stdin } = process;
  if (!process.stdout.isTTY || !stdin.isTTY) return () => {};
  const restore = enterRawMode(stdin, "a pipe");
  const goOn = (): void => void stdin.setRawMode(false).setRawMode(true);
  process.on("SIGCONT", goOn);
  stdin.on("data", (keys: Buffer) => {
    for (const key of keys.toString("latin1")) {
      const signal = SIGNALS[key];
      if (signal === undefined) onKey(key);
      else {
        stdin.setRawMode(false);
        // As a terminal signals: the whole group.
        process.kill(0, signal);
      }
    }
  });
  return () => {
    process.off("SIGCONT", goOn);
    restore();
    stdin.destroy();
  };
}

/**
 * Node makes terminals blocking, so a stopped one (Ctrl-S) would delay `~.` and signals. libuv's
 * handle can undo that (uv_stream_set_blocking).
 */
export function writeWithoutWaiting(...outputs: readonly NodeJS.WriteStream[]): void {
  for (const output of outputs) {
    if (!output.isTTY) continue;
    const { _handle: handle } = output as { _handle?: { setBlocking?(isBlocking: boolean): number } };
    handle?.setBlocking?.(false);
  }
}

/**
 * Passes keys on until all of `keys` come in a row, as in Docker. Keys of an incomplete sequence
 * wait.
 */
export class DetachFilter extends Transform {
  readonly #keys: Buffer;
  readonly #onDetach: () => void;
  #matched = 0;

  constructor(keys: Buffer, onDetach: () => void) {
    super();
    this.#keys = keys;
    this.#onDetach = onDetach;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    for (const byte of chunk) {
      if (byte === this.#keys[this.#matched]) {
        this.#matched += 1;
        if (this.#matched < this.#keys.length) continue;
        this.#matched = 0;
        this.#onDetach();
        break;
      }
      const held = this.#keys.subarray(0, this.#matched);
      this.#matched = byte === this.#keys[0] ? 1 : 0;
      this.push(this.#matched === 1 ? Buffer.from(held) : Buffer.from([...held, byte]));
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#matched > 0) this.push(Buffer.from(this.#keys.subarray(0, this.#matched)));
    done();
  }
}

/**
 * ssh's escape: the character and a dot at the start of a line end the session; the character twice
 * sends it once.
 */
export class EscapeFilter extends Transform {
  readonly #escape: number;
  readonly #onEscape: () => void;
  #isAtLineStart = true;
  #hasEscape = false;

  constructor(character: string, onEscape: () => void) {
    super();
    this.#escape = character.charCodeAt(0);
    this.#onEscape = onEscape;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const passed: number[] = [];
    for (const byte of chunk) {
      if (this.#hasEscape) {
        this.#hasEscape = false;
        if (byte === DOT) {
          this.#onEscape();
          break;
        }
        if (byte !== this.#escape) passed.push(this.#escape);
        passed.push(byte);
      } else if (this.#isAtLineStart && byte === this.#escape) {
        this.#hasEscape = true;
        continue;
      } else passed.push(byte);
      this.#isAtLineStart = byte === CR || byte === LF;
    }
    if (passed.length > 0) this.push(Buffer.from(passed));
    done();
  }

  override _flush(done: TransformCallback): void {
    if (this.#hasEscape) this.push(Buffer.of(this.#escape));
    done();
  }
}
