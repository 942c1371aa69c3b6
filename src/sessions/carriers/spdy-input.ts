import type { SpdyStream } from "@sluice/protocols/spdy";

/** The streams on which a SPDY node reads a command's input. Nothing is written behind the command's result. */
export class SpdyInput {
  stdin: SpdyStream | undefined;
  /** Absent without a terminal. */
  resize: SpdyStream | undefined;
  readonly #hasResult: () => boolean;

  constructor(hasResult: () => boolean) {
    this.#hasResult = hasResult;
  }

  /** Stdin was requested, has not ended, and a process may read it. */
  get readsStdin(): boolean {
    return !this.#hasResult() && this.stdin?.isWritable === true;
  }

  readonly writeStdin = (part: Uint8Array): void => this.#running(this.stdin)?.write(part);
  readonly writeResize = (part: Uint8Array): void => this.#running(this.resize)?.write(part);
  readonly finishStdin = (): void => this.#running(this.stdin)?.finish();
  readonly finishResize = (): void => this.#running(this.resize)?.finish();

  #running(stream: SpdyStream | undefined): SpdyStream | undefined {
    return this.#hasResult() ? undefined : stream;
  }
}
