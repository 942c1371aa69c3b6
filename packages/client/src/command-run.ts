import { type RemoteCommandVersion, specOf, type TerminalSize } from "@sluice/protocols/remotecommand";
import { type CommandEnd, commandEndOf, MAX_STATUS_BYTES } from "./command-end.ts";
import {
  type CommandLink,
  type CommandLinkHandler,
  type LinkEnd,
  MAX_CLOSE_MS,
  MAX_PART_BYTES,
} from "./command-link.ts";
import type { SessionTimes } from "./session-times.ts";
import { type InputSource, type InputStream, openInput } from "./sessions/input-source.ts";
import { type OutputSink, type OutputStream, openOutput } from "./sessions/output-sink.ts";
import { SessionError } from "./sessions/session-error.ts";

/** The local streams of a session; absent ones are not requested. */
export interface CommandStreams {
  /** What the command reads. Default: not requested. */
  readonly stdin?: InputStream | undefined;
  /** What the command prints. Default: not requested. */
  readonly stdout?: OutputStream | undefined;
  /** Default: not requested. Ignored with `tty`: a terminal merges stderr into stdout. */
  readonly stderr?: OutputStream | undefined;
  /** Asks for a terminal. Default: false. */
  readonly tty?: boolean | undefined;
  /** The terminal's first size, then every change. Only with `tty`. Default: the server's size. */
  readonly terminalSizes?: AsyncIterable<TerminalSize> | undefined;
  /** Ends the session, or the attempt to start one. Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Connects a link with local streams. A full local output stops reading from the link, and a full
 * link stops reading the input: each side buffers at most one socket buffer and one chunk.
 */
export class CommandRun {
  readonly #streams: CommandStreams;
  readonly #version: RemoteCommandVersion;
  readonly #times: SessionTimes;
  readonly #link: CommandLink;
  readonly #sinks = new Map<"stdout" | "stderr", OutputSink>();
  readonly #status: Uint8Array[] = [];
  #statusBytes = 0;
  #input: InputSource | undefined;
  #sizes: AsyncIterator<TerminalSize> | undefined;
  #closeTimer: NodeJS.Timeout | undefined;
  #heldInput: Uint8Array | undefined;
  #hasInputEnded = false;
  #isPaused = false;
  #isOver = false;
  #settle: { resolve(end: CommandEnd): void; reject(error: Error): void } | undefined;

  constructor(
    openLink: (handler: CommandLinkHandler) => CommandLink,
    version: RemoteCommandVersion,
    streams: CommandStreams,
    times: SessionTimes,
  ) {
    this.#streams = streams;
    this.#version = version;
    this.#times = times;
    this.#link = openLink({
      onOutput: (stream, part) => this.#output(stream, part),
      onStatus: (part) => this.#receiveStatus(part),
      onDrain: () => this.#sendHeldInput(),
      onEnd: (end) => this.#ended(end),
    });
  }

  /**
   * Resolves once the command and its connection have ended and its output is written. Throws
   * SessionError after closing the link.
   */
  run(): Promise<CommandEnd> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      const { signal, stdout, stderr, tty } = this.#streams;
      if (signal?.aborted) {
        this.#fail(new SessionError("aborted", "context canceled"));
        return;
      }
      signal?.addEventListener("abort", this.#onAbort, { once: true });
      this.#openSink("stdout", stdout);
      if (tty !== true) this.#openSink("stderr", stderr);
      this.#link.start([...this.#sinks.values()].every((sink) => !sink.keepsParts));
      if (this.#isOver) return;
      this.#startInput();
      if (tty === true) void this.#sendSizes();
    });
  }

  readonly #onAbort = (): void => this.#fail(new SessionError("aborted", "context canceled"));

  #openSink(name: "stdout" | "stderr", stream: OutputStream | undefined): void {
    if (stream === undefined) return;
    const sink = openOutput(stream, {
      onDrain: () => this.#drained(),
      onError: (cause) =>
        this.#fail(new SessionError("output-failed", `writing to ${name}: ${cause.message}`, { cause })),
    });
    this.#sinks.set(name, sink);
  }

  #startInput(): void {
    if (this.#streams.stdin === undefined) return;
    this.#input = openInput(this.#streams.stdin, {
      onPart: (part) => this.#sendInput(part),
      onEnd: () => this.#inputEnded(),
      onError: (cause) =>
        this.#fail(new SessionError("input-failed", `reading from stdin: ${cause.message}`, { cause })),
    });
    if (this.#isOver) this.#input.stop();
  }

  /** Queues at most MAX_PART_BYTES at a time, however large the chunk. */
  #sendInput(part: Uint8Array): boolean {
    for (let offset = 0; offset < part.byteLength; offset += MAX_PART_BYTES) {
      if (this.#link.sendInput(part.subarray(offset, offset + MAX_PART_BYTES))) continue;
      const rest = part.subarray(offset + MAX_PART_BYTES);
      this.#heldInput = rest.byteLength > 0 ? rest : undefined;
      return false;
    }
    return true;
  }

  #sendHeldInput(): void {
    const held = this.#heldInput;
    this.#heldInput = undefined;
    if (held !== undefined && !this.#sendInput(held)) return;
    if (this.#hasInputEnded) this.#link.endInput();
    else this.#input?.resume();
  }

  /** A stream may end while its last chunk still waits. */
  #inputEnded(): void {
    this.#hasInputEnded = true;
    if (this.#heldInput === undefined) this.#link.endInput();
  }

  async #sendSizes(): Promise<void> {
    const sizes = this.#streams.terminalSizes?.[Symbol.asyncIterator]();
    this.#sizes = sizes;
    if (sizes === undefined) return;
    try {
      for (;;) {
        const { done, value } = await sizes.next();
        if (done || this.#isOver) return;
        this.#link.resize(value);
      }
    } catch {
      // The session continues without terminal sizes.
    }
  }

  #output(stream: "stdout" | "stderr", part: Uint8Array): void {
    const sink = this.#sinks.get(stream);
    if (sink === undefined || sink.write(part) || this.#isPaused || this.#isOver) return;
    this.#isPaused = true;
    this.#link.pause();
  }

  #drained(): void {
    if (!this.#isPaused || [...this.#sinks.values()].some((sink) => sink.needsDrain)) return;
    this.#isPaused = false;
    if (!this.#isOver) this.#link.resume();
  }

  /**
   * Copies the part: it stays until the output is written, and must not keep its whole chunk alive.
   */
  #receiveStatus(part: Uint8Array): void {
    this.#statusBytes += part.byteLength;
    if (this.#statusBytes > MAX_STATUS_BYTES) {
      this.#fail(new SessionError("protocol-error", "the server sent a status that is too large"));
      return;
    }
    this.#status.push(new Uint8Array(part));
    this.#awaitClose();
  }

  /** A status is final; the server gets limited time to close after it. */
  #awaitClose(): void {
    clearTimeout(this.#closeTimer);
    this.#closeTimer = setTimeout(() => {
      if (this.#isPaused) this.#awaitClose();
      else this.#ended({ isOrderly: false, error: noStatus() });
    }, this.#times.closeWaitMs).unref();
  }

  #ended({ isOrderly, error }: LinkEnd): void {
    if (this.#isOver) return;
    const said = commandEndOf(this.#version, Buffer.concat(this.#status));
    // Up to v3 an empty error stream means success; only its proper end excludes a crashed server.
    const isProven = isOrderly || specOf(this.#version).hasStatusJson;
    if (said instanceof SessionError) this.#fail(said);
    else if (said === undefined || (said.exitCode === 0 && !isProven)) this.#fail(error);
    else this.#succeed(said);
  }

  #succeed(end: CommandEnd): void {
    this.#stop();
    this.#link.close();
    const isClosed = this.#connectionClosed();
    const flushed = Promise.all([...this.#sinks.values()].map((sink) => sink.flushed()));
    void flushed
      .then(() => {
        this.#release();
        return isClosed;
      })
      .then(() => this.#settle?.resolve(end));
  }

  /** A caller that exits at once would reset the connection, and look as if it had left early. */
  #connectionClosed(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, MAX_CLOSE_MS);
      this.#link.onceClosed(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #fail(error: SessionError): void {
    if (this.#isOver) {
      // The command ended, but its output is lost, so this is a failure.
      this.#release();
      this.#settle?.reject(error);
      return;
    }
    this.#stop();
    this.#link.abort();
    this.#release();
    this.#settle?.reject(error);
  }

  #stop(): void {
    this.#isOver = true;
    clearTimeout(this.#closeTimer);
    this.#input?.stop();
    void this.#sizes?.return?.();
  }

  #release(): void {
    this.#streams.signal?.removeEventListener("abort", this.#onAbort);
    for (const sink of this.#sinks.values()) sink.release();
    this.#sinks.clear();
  }
}

function noStatus(): SessionError {
  return new SessionError("missing-status", "the server ended the session without a status");
}
