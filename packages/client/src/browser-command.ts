import { CHANNEL, encodeResize, type TerminalSize } from "@sluice/protocols/remotecommand";
import {
  type BrowserCluster,
  channelMessage,
  MAX_UNTAKEN_BYTES,
  openBrowserSocket,
  sendInput,
  sendOn,
} from "./browser-socket.ts";
import { type CommandEnd, commandEndOf, MAX_STATUS_BYTES } from "./command-end.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import { SessionError, type SessionErrorCode } from "./sessions/session-error.ts";

/** After the status, as in the other executors. */
const CLOSE_WAIT_MS = 10_000;
const NORMAL_CLOSE = 1000;

/** The page's streams of a session; absent ones are not requested. They are not ended. */
export interface BrowserStreams {
  /** What the command reads. Default: not requested. */
  readonly stdin?: ReadableStream<Uint8Array> | undefined;
  /** What the command prints. Default: not requested. */
  readonly stdout?: WritableStream<Uint8Array> | undefined;
  /** Default: not requested. Ignored with `tty`: a terminal merges stderr into stdout. */
  readonly stderr?: WritableStream<Uint8Array> | undefined;
  /** Asks for a terminal. Default: false. */
  readonly tty?: boolean | undefined;
  /** The terminal's first size, then every change. Only with `tty`. Default: the server's size. */
  readonly terminalSizes?: AsyncIterable<TerminalSize> | undefined;
  /** Ends the session, or the attempt to start one. Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
}

/** One command over the global WebSocket. */
export class BrowserCommand {
  readonly #socket: WebSocket;
  readonly #streams: BrowserStreams;
  readonly #writers = new Map<number, WritableStreamDefaultWriter<Uint8Array>>();
  readonly #status: number[] = [];
  #written: Promise<void> = Promise.resolve();
  #untakenBytes = 0;
  readonly #over: Promise<{ done: true; value: undefined }>;
  #stop: (end: { done: true; value: undefined }) => void = () => {};
  #isOpen = false;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #isOver = false;
  #settle: { resolve(end: CommandEnd): void; reject(error: Error): void } | undefined;

  constructor(cluster: BrowserCluster, path: string, streams: BrowserStreams) {
    if (streams.signal?.aborted) throw new ConnectError("aborted", "context canceled");
    this.#streams = streams;
    this.#over = new Promise((resolve) => {
      this.#stop = resolve;
    });
    this.#socket = openBrowserSocket(cluster, path, ["v5.channel.k8s.io", "v4.channel.k8s.io"]);
  }

  run(): Promise<CommandEnd> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      const { signal, stdout, stderr, tty } = this.#streams;
      signal?.addEventListener("abort", this.#onAbort, { once: true });
      if (stdout !== undefined) this.#writers.set(CHANNEL.STDOUT, stdout.getWriter());
      if (stderr !== undefined && tty !== true) this.#writers.set(CHANNEL.STDERR, stderr.getWriter());
      this.#socket.onopen = () => this.#opened();
      this.#socket.onmessage = ({ data }) => this.#message(data);
      this.#socket.onclose = ({ code, reason }) => this.#closed(code, reason);
    });
  }

  readonly #onAbort = (): void => {
    const error = this.#isOpen
      ? new SessionError("aborted", "context canceled")
      : new ConnectError("aborted", "context canceled");
    this.#fail(error);
  };

  #opened(): void {
    this.#isOpen = true;
    this.#sendInput().catch((cause: unknown) =>
      this.#failed("input-failed", `reading from stdin: ${cause}`, cause),
    );
    // The session continues without terminal sizes.
    if (this.#streams.tty === true) this.#sendSizes().catch(() => {});
  }

  #message(data: unknown): void {
    if (this.#isOver) return;
    const message = channelMessage(data);
    if (message === undefined) {
      this.#failed("protocol-error", "unexpected message type: 1");
      return;
    }
    const { channel, part } = message;
    if (channel === CHANNEL.ERROR) this.#receiveStatus(part);
    else if (part.byteLength > 0) this.#output(channel, part);
  }

  #output(channel: number, part: Uint8Array): void {
    const writer = this.#writers.get(channel);
    if (writer === undefined) return;
    this.#untakenBytes += part.byteLength;
    if (this.#untakenBytes > MAX_UNTAKEN_BYTES) {
      this.#failed("output-failed", "the output is not taken as fast as it comes");
      return;
    }
    this.#written = this.#written
      .then(() => writer.write(part))
      .then(() => {
        this.#untakenBytes -= part.byteLength;
      })
      .catch((cause: unknown) => this.#failed("output-failed", `writing the output: ${cause}`, cause));
  }

  #receiveStatus(part: Uint8Array): void {
    if (this.#status.length + part.byteLength > MAX_STATUS_BYTES) {
      this.#failed("protocol-error", "the server sent a status that is too large");
      return;
    }
    this.#status.push(...part);
    clearTimeout(this.#closeTimer);
    this.#closeTimer = setTimeout(() => this.#closed(1006, "the server does not close"), CLOSE_WAIT_MS);
  }

  async #sendInput(): Promise<void> {
    const reader = this.#streams.stdin?.getReader();
    if (reader === undefined) return;
    try {
      for (;;) {
        const { done, value } = await Promise.race([reader.read(), this.#over]);
        if (this.#isOver) return;
        if (done) break;
        await sendInput(this.#socket, CHANNEL.STDIN, value);
      }
      const isV5 = this.#socket.protocol === "v5.channel.k8s.io";
      if (isV5) sendOn(this.#socket, CHANNEL.CLOSE, Uint8Array.of(CHANNEL.STDIN));
    } finally {
      reader.releaseLock();
    }
  }

  async #sendSizes(): Promise<void> {
    const sizes = this.#streams.terminalSizes?.[Symbol.asyncIterator]();
    if (sizes === undefined) return;
    for (;;) {
      const { done, value } = await Promise.race([sizes.next(), this.#over]);
      if (done || this.#isOver) break;
      sendOn(this.#socket, CHANNEL.RESIZE, encodeResize(value));
    }
    await sizes.return?.();
  }

  #closed(code: number, reason: string): void {
    if (this.#isOver) return;
    if (!this.#isOpen) {
      const text = "the WebSocket did not open; its page is not told why";
      this.#end(() => this.#settle?.reject(new ConnectError("handshake", text)));
      return;
    }
    const said = commandEndOf("v5.channel.k8s.io", Uint8Array.from(this.#status));
    if (said instanceof SessionError) this.#fail(said);
    else if (said !== undefined) this.#succeed(said);
    else if (code === NORMAL_CLOSE)
      this.#failed("missing-status", "the server ended the session without a status");
    else this.#failed("connection-lost", `websocket: close ${code}: ${reason}`);
  }

  #succeed(end: CommandEnd): void {
    this.#isOver = true;
    void this.#written.then(() => this.#end(() => this.#settle?.resolve(end)));
  }

  #failed(code: SessionErrorCode, message: string, cause?: unknown): void {
    this.#fail(new SessionError(code, message, { cause }));
  }

  /** May also be called while the last output of a successful command is being written. */
  #fail(error: Error): void {
    this.#end(() => this.#settle?.reject(error));
  }

  #end(settle: () => void): void {
    this.#isOver = true;
    this.#stop({ done: true, value: undefined });
    clearTimeout(this.#closeTimer);
    this.#socket.onmessage = this.#socket.onclose = null;
    this.#socket.close();
    this.#streams.signal?.removeEventListener("abort", this.#onAbort);
    for (const writer of this.#writers.values()) writer.releaseLock();
    this.#writers.clear();
    settle();
  }
}
