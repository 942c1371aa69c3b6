import { Readable } from "node:stream";

/** A session's input. A chunk of an iterable may be overwritten once the next one is requested. */
export type InputStream = Readable | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

interface InputHandler {
  /** False asks the source to stop until `resume`. */
  onPart(part: Uint8Array): boolean;
  onEnd(): void;
  onError(error: Error): void;
}

/**
 * Reads a stream only as fast as its reader wants, and returns it, with unread parts, at the end.
 */
export interface InputSource {
  resume(): void;
  /** Releases the stream; no callback runs afterwards. */
  stop(): void;
}

export function openInput(stream: InputStream, handler: InputHandler): InputSource {
  if (stream instanceof Readable) return new NodeInput(stream, handler);
  if ("getReader" in stream) {
    const reader = stream.getReader();
    return new PulledInput({ next: () => reader.read(), letGo: () => reader.releaseLock() }, handler);
  }
  const iterator = stream[Symbol.asyncIterator]();
  return new PulledInput(
    { next: () => iterator.next(), letGo: () => void iterator.return?.().catch(() => {}) },
    handler,
  );
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

interface Pulled {
  next(): Promise<{ done?: boolean | undefined; value?: Uint8Array | undefined }>;
  letGo(): void;
}

/** Reads a source that produces chunks on request. */
class PulledInput implements InputSource {
  readonly #pulled: Pulled;
  readonly #handler: InputHandler;
  #wake: (() => void) | undefined;
  #isStopped = false;

  constructor(pulled: Pulled, handler: InputHandler) {
    this.#pulled = pulled;
    this.#handler = handler;
    void this.#read();
  }

  resume(): void {
    this.#wake?.();
  }

  stop(): void {
    this.#isStopped = true;
    this.#pulled.letGo();
    this.#wake?.();
  }

  async #read(): Promise<void> {
    try {
      while (!this.#isStopped) {
        const { done, value } = await this.#pulled.next();
        if (this.#isStopped) return;
        if (done || value === undefined) {
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
