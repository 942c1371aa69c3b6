import { Writable } from "node:stream";

/** A session's output. The session does not end it, because several may write to one terminal. */
export type OutputStream = Writable | WritableStream<Uint8Array> | PartTaker;

/** Accepts output without a stream's overhead, for bulk transfers. */
export interface PartTaker {
  /**
   * Must keep no view of the part: its memory is reused. Undefined accepts more; a promise asks the
   * caller to wait, and rejects if accepted output was lost. Never throws.
   */
  takePart(part: Uint8Array): Promise<void> | undefined;
}

interface OutputHandler {
  /** The sink accepts more. */
  onDrain(): void;
  /** Earlier and later writes may be lost. */
  onError(error: Error): void;
}

export interface OutputSink {
  /** False asks the caller to wait for `onDrain`. */
  write(part: Uint8Array): boolean;
  readonly needsDrain: boolean;
  /** Whether the sink reads parts after `write` has returned. */
  readonly keepsParts: boolean;
  /** Resolves once everything is written, or the sink has failed. */
  flushed(): Promise<void>;
  /** Releases the stream. */
  release(): void;
}

export function openOutput(stream: OutputStream, handler: OutputHandler): OutputSink {
  if ("takePart" in stream) return new TakerSink(stream, handler);
  return stream instanceof Writable ? new NodeSink(stream, handler) : new WebSink(stream, handler);
}

/** Counts writes in progress. */
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
    // The session reuses its chunk after this returns, and a web stream may keep what it gets.
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
