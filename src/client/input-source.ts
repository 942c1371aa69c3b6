import { Readable } from "node:stream";

/** Where a session's input comes from. */
export type InputStream = Readable | ReadableStream<Uint8Array>;

export interface InputHandler {
  /** False: stop until `resume`. */
  onPart(part: Uint8Array): boolean;
  onEnd(): void;
  onError(error: Error): void;
}

/** A stream that is read only as fast as its reader wants, and handed back, unread parts included, when that ends. */
export interface InputSource {
  resume(): void;
  /** Lets go of the stream. Nothing is called afterwards. */
  stop(): void;
}

export function openInput(stream: InputStream, handler: InputHandler): InputSource {
  return stream instanceof Readable ? new NodeInput(stream, handler) : new WebInput(stream, handler);
}

class NodeInput implements InputSource {
  readonly #stream: Readable;
  readonly #listeners: readonly (readonly [event: string, listener: (argument: never) => void])[];

  constructor(stream: Readable, handler: InputHandler) {
    this.#stream = stream;
    let hasEnded = false;
    const end = (): void => {
      hasEnded = true;
      handler.onEnd();
    };
    this.#listeners = [
      [
        "data",
        (chunk: Uint8Array | string): void => {
          const part = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
          if (!handler.onPart(part)) stream.pause();
        },
      ],
      ["end", end],
      ["error", (error: Error) => handler.onError(error)],
      [
        "close",
        () => {
          if (!hasEnded && !stream.readableEnded) handler.onError(new Error("premature close"));
        },
      ],
    ];
    for (const [event, listener] of this.#listeners) stream.on(event, listener as () => void);
    if (stream.readableEnded) end();
    else stream.resume();
  }

  resume(): void {
    this.#stream.resume();
  }

  stop(): void {
    for (const [event, listener] of this.#listeners) this.#stream.off(event, listener as () => void);
    this.#stream.pause();
  }
}

class WebInput implements InputSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #handler: InputHandler;
  #wake: (() => void) | undefined;
  #isStopped = false;

  constructor(stream: ReadableStream<Uint8Array>, handler: InputHandler) {
    this.#reader = stream.getReader();
    this.#handler = handler;
    void this.#read();
  }

  resume(): void {
    this.#wake?.();
  }

  stop(): void {
    this.#isStopped = true;
    this.#reader.releaseLock();
    this.#wake?.();
  }

  async #read(): Promise<void> {
    try {
      while (!this.#isStopped) {
        const { done, value } = await this.#reader.read();
        if (this.#isStopped) return;
        if (done) {
          this.#handler.onEnd();
          return;
        }
        if (this.#handler.onPart(value)) continue;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } catch (error) {
      if (!this.#isStopped) this.#handler.onError(error instanceof Error ? error : new Error(String(error)));
    }
  }
}
