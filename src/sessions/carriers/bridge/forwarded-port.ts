import type { SpdyStream, SpdyStreamHandler, StreamEnd } from "../../../../protocols/spdy/index.ts";

/** A node ends both streams of a pair together; one that forgets the error stream is not waited for. */
const AFTER_DATA_MS = 10_000;

/** What the connection to a port does to the client's two channels. */
export interface PortChannels {
  /** Never empty. */
  sendData(part: Uint8Array): void;
  /** Never empty. */
  sendError(text: Uint8Array): void;
  /** Before either is sent: what the node sent itself. */
  observeData(type: "data" | "error", part: Uint8Array): void;
  observeEnd(type: "data" | "error"): void;
  /** Milliseconds of the session's clock. */
  now(): number;
}

/** One connection to a port of the pod: a pair of SPDY streams that is over when the node has ended both. */
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
          this.#channels.observeData("data", part);
          this.#channels.sendData(part);
        }
        if (fin) this.#dataEnded();
      },
      onEnd: ({ type }: StreamEnd) => {
        // The session's end is the session's to tell.
        if (type === "reset") this.#dataEnded();
      },
    };
  }

  get errorHandler(): SpdyStreamHandler {
    return {
      onData: (part, fin) => {
        if (part.byteLength > 0) {
          this.#hasSpoken = true;
          this.#channels.observeData("error", part);
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

  /** What comes behind the end of the connection is dropped, as by the target itself. */
  write(part: Uint8Array): void {
    this.#data?.write(part);
  }

  /** The client is gone. */
  finish(): void {
    this.#data?.finish();
  }

  /** The connection is lost, and not by the target's will. */
  fail(message: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const text = `error forwarding port ${this.#port}: ${message}`;
    this.#channels.sendError(new TextEncoder().encode(text));
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

  /** A channel has no end of its own and the client no other word for it: the target's end is the connection's. */
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
