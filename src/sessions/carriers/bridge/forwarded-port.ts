import { forwardErrorText } from "@sluice/protocols/portforward";
import type { SpdyStream, SpdyStreamHandler, StreamEnd } from "@sluice/protocols/spdy";

/**
 * How long a node may take to end the error stream of a bridged port after its data. Past it the
 * connection ends.
 */
const AFTER_DATA_MS = 10_000;

/** Sends to the client's two channels for a port. */
interface PortChannels {
  /** `part` is never empty. */
  sendData(part: Uint8Array): void;
  /** `text` is never empty. */
  sendError(text: Uint8Array): void;
  /**
   * Shows the node's bytes to observers before they are sent. True: drop them, the session is over.
   */
  isRefused(type: "data" | "error", part: Uint8Array): boolean;
  observeEnd(type: "data" | "error"): void;
  /** The session clock's time in milliseconds. */
  now(): number;
}

/** One connection to a pod's port, over a pair of SPDY streams. It is over when the node has ended both. */
export class ForwardedPort {
  readonly #port: number;
  readonly #channels: PortChannels;
  #data: SpdyStream | undefined;
  #isAccepted = false;
  #hasSpoken = false;
  #dataEndedMs: number | undefined;
  #isErrorOver = false;
  #isOver = false;

  constructor(port: number, channels: PortChannels) {
    this.#port = port;
    this.#channels = channels;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get dataHandler(): SpdyStreamHandler {
    return {
      onReply: () => {
        this.#isAccepted = true;
      },
      onData: (part, fin) => {
        this.#isAccepted = true;
        if (part.byteLength > 0) {
          if (this.#channels.isRefused("data", part)) return;
          this.#channels.sendData(part);
        }
        if (fin) this.#dataEnded();
      },
      onEnd: ({ type }: StreamEnd) => {
        // When the whole session ends, the bridge reports that.
        if (type === "reset") this.#dataEnded();
      },
    };
  }

  get errorHandler(): SpdyStreamHandler {
    return {
      onData: (part, fin) => {
        if (part.byteLength > 0) {
          this.#hasSpoken = true;
          if (this.#channels.isRefused("error", part)) return;
          this.#channels.sendError(part);
        }
        if (fin) this.#errorEnded();
      },
      onEnd: ({ type }: StreamEnd) => {
        if (type === "reset") this.#errorEnded();
      },
    };
  }

  attach(data: SpdyStream): void {
    this.#data = data;
  }

  /** Drops data after the target has closed the connection, as the target itself would. */
  write(part: Uint8Array): void {
    this.#data?.write(part);
  }

  /** The client has left. */
  finish(): void {
    this.#data?.finish();
  }

  /** The connection broke before the target closed it. */
  fail(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#channels.sendError(forwardErrorText(this.#port, message));
  }

  tick(nowMs: number, hasTimeToOpen: boolean): void {
    if (this.#isOver) return;
    if (!this.#isAccepted && !hasTimeToOpen) {
      this.fail("the node did not accept the streams in time");
      this.#data?.reset();
    } else if (this.#dataEndedMs !== undefined && nowMs - this.#dataEndedMs >= AFTER_DATA_MS) {
      this.#isOver = true;
    }
  }

  /** A channel cannot be half-closed: when the target ends its side, the whole connection ends. */
  #dataEnded(): void {
    if (this.#isOver) return;
    this.#channels.observeEnd("data");
    this.#dataEndedMs = this.#channels.now();
    this.#data?.finish();
    this.#endIfBothOver();
  }

  #errorEnded(): void {
    this.#channels.observeEnd("error");
    this.#isErrorOver = true;
    this.#endIfBothOver();
  }

  #endIfBothOver(): void {
    if (this.#isOver || this.#dataEndedMs === undefined || !this.#isErrorOver) return;
    if (!this.#isAccepted && !this.#hasSpoken) this.fail("the node refused the streams");
    this.#isOver = true;
  }
}
