import { Writable } from "node:stream";

/** Where a session's output goes. It is not ended with the session: several may write to one terminal. */
export type OutputStream = Writable | WritableStream<Uint8Array> | PartTaker;

/** Takes output without the cost of a stream: for bulk. */
export interface PartTaker {
  /**
   * Keeps no view of the part, whose memory is used again. Undefined: more may come. A promise: it should not come before that
   * resolves, though a little may; it rejects where what was taken is lost. Never throws.
   */
  takePart(part: Uint8Array): Promise<void> | undefined;
}

export interface OutputHandler {
  /** It may be written to again. */
  onDrain(): void;
  /** Nothing that was written, or will be, arrives for certain. */
  onError(error: Error): void;
}

export interface OutputSink {
  /** False: more should wait for `onDrain`. */
  write(part: Uint8Array): boolean;
  readonly needsDrain: boolean;
  /** Whether parts are looked at after `write` has returned. */
  readonly keepsParts: boolean;
  /** Resolves when everything written has been taken, or the sink has failed. */
  flushed(): Promise<void>;
  /** Lets go of the stream. */
  release(): void;
}

export function openOutput(stream: OutputStream, handler: OutputHandler): OutputSink {
  if ("takePart" in stream) return new TakerSink(stream, handler);
  return stream instanceof Writable ? new NodeSink(stream, handler) : new WebSink(stream, handler);
}

/** Counts the writes that have not been taken. */
class PendingWrites {
  #count = 0;
  #hasFailed = false;
  #resolvers: (() => void)[] = [];

  add(): void {
    this.#count += 1;
  }

  taken(): void {
    this.#count -= 1;
    if (this.#count === 0) this.#resolve();
  }

  fail(): void {
    this.#hasFailed = true;
    this.#resolve();
  }

  get isEmpty(): boolean {
    return this.#count === 0 || this.#hasFailed;
  }

  whenEmpty(): Promise<void> {
    return this.isEmpty ? Promise.resolve() : new Promise((resolve) => this.#resolvers.push(resolve));
  }

  #resolve(): void {
    for (const resolve of this.#resolvers.splice(0)) resolve();
  }
}

class TakerSink implements OutputSink {
  readonly keepsParts = false;
  readonly #taker: PartTaker;
  readonly #handler: OutputHandler;
  readonly #pending = new PendingWrites();
  #isReleased = false;

  constructor(taker: PartTaker, handler: OutputHandler) {
    this.#taker = taker;
    this.#handler = handler;
  }

  write(part: Uint8Array): boolean {
    const taken = this.#taker.takePart(part);
    if (taken === undefined) return !this.needsDrain;
    this.#pending.add();
    taken.then(
      () => {
        this.#pending.taken();
        if (!this.needsDrain && !this.#isReleased) this.#handler.onDrain();
      },
      (error: Error) => {
        this.#pending.fail();
        if (!this.#isReleased) this.#handler.onError(error);
      },
    );
    return false;
  }

  get needsDrain(): boolean {
    return !this.#pending.isEmpty;
  }

  flushed(): Promise<void> {
    return this.#pending.whenEmpty();
  }

  release(): void {
    this.#isReleased = true;
  }
}

class NodeSink implements OutputSink {
  readonly keepsParts = true;
  readonly #stream: Writable;
  readonly #pending = new PendingWrites();
  readonly #onDrain: () => void;
  readonly #onError: (error: Error) => void;
  readonly #onClose: () => void;

  constructor(stream: Writable, handler: OutputHandler) {
    this.#stream = stream;
    this.#onDrain = () => handler.onDrain();
    this.#onError = (error) => {
      this.#pending.fail();
      handler.onError(error);
    };
    this.#onClose = () => {
      if (!stream.writableFinished) this.#onError(new Error("premature close"));
    };
    stream.on("drain", this.#onDrain).on("error", this.#onError).on("close", this.#onClose);
  }

  write(part: Uint8Array): boolean {
    this.#pending.add();
    return this.#stream.write(part, () => this.#pending.taken());
  }

  get needsDrain(): boolean {
    return this.#stream.writableNeedDrain;
  }

  flushed(): Promise<void> {
    return this.#pending.whenEmpty();
  }

  release(): void {
    this.#stream.off("drain", this.#onDrain).off("error", this.#onError).off("close", this.#onClose);
  }
}

class WebSink implements OutputSink {
  readonly keepsParts = false;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #handler: OutputHandler;
  readonly #pending = new PendingWrites();

  constructor(stream: WritableStream<Uint8Array>, handler: OutputHandler) {
    this.#writer = stream.getWriter();
    this.#handler = handler;
  }

  write(part: Uint8Array): boolean {
    this.#pending.add();
    // The session's chunk is its own again when this returns; a web stream may keep what it is given.
    this.#writer.write(new Uint8Array(part)).then(
      () => {
        this.#pending.taken();
        if (!this.needsDrain) this.#handler.onDrain();
      },
      (error: unknown) => {
        this.#pending.fail();
        this.#handler.onError(error instanceof Error ? error : new Error(String(error)));
      },
    );
    return !this.needsDrain;
  }

  get needsDrain(): boolean {
    return !this.#pending.isEmpty && (this.#writer.desiredSize ?? 0) <= 0;
  }

  flushed(): Promise<void> {
    return this.#pending.whenEmpty();
  }

  release(): void {
    this.#writer.releaseLock();
  }
}
