import {
  CLIENT_PREFACE_BYTES,
  ClientConnection,
  type ClientConnectionHandler,
  encodeFrame,
  errorCodeName,
  FRAME,
  Http2Error,
} from "@sluice/protocols/http2";
import { closeAfterServer } from "../close-after-server.ts";
import type { ProbeSocket } from "../probe-socket.ts";

/** A connection's events and its end. */
export interface Http2LinkHandler extends ClientConnectionHandler {
  /**
   * The connection ended before we closed it; the text has Go's words. `isEof`: the server ended it
   * without an error.
   */
  onBroken(text: string, isEof: boolean): void;
}

/** GOAWAY without an error, with no server stream accepted. */
const GOAWAY_BYTES = encodeFrame(FRAME.GOAWAY, 0, 0, new Uint8Array(8));

/**
 * Answers to PINGs and SETTINGS that a probed server does not read. Past it: Failure `http2: too
 * many control frames`.
 */
const MAX_UNSENT_BYTES = 64 * 1024;

const TOO_LARGE = "http2: frame too large";

/**
 * One probe's HTTP/2 connection on a connected socket, plain or TLS. Sends related frames in one
 * write, because a server that refuses them hangs up after the first.
 */
export class Http2Link {
  readonly #socket: ProbeSocket;
  readonly #handler: Http2LinkHandler;
  readonly #connection: ClientConnection;
  #unsent: Uint8Array[] = [CLIENT_PREFACE_BYTES];
  #isOver = false;

  /** Sends nothing before `flush`. From now on the link owns the socket. */
  constructor(socket: ProbeSocket, handler: Http2LinkHandler) {
    this.#socket = socket;
    this.#handler = handler;
    this.#connection = new ClientConnection(handler, (bytes) => this.#unsent.push(bytes));
    socket.hear({
      onOpen: () => {},
      onData: (chunk) => this.#onData(chunk),
      onEnd: () => this.#break(this.#connection.isBetweenFrames ? "EOF" : "unexpected EOF", true),
      onError: (error) => this.#break(socket.textOf(error), false),
    });
  }

  get maxConcurrentStreams(): number {
    return this.#connection.maxConcurrentStreams;
  }

  get nextStreamId(): number {
    return this.#connection.nextStreamId;
  }

  /** Queues frames for stream `nextStreamId`. `flush` or the end of the current read sends them. */
  request(headers: Uint8Array, body?: Uint8Array): void {
    this.#connection.request(headers, body);
  }

  /** Sends the preface and the first request from `encodeFirstRequest`, before anything else and at once. */
  begin(bytes: Uint8Array, bodyBytes = 0): void {
    this.#unsent = [];
    this.#connection.begin(bytes, bodyBytes);
    this.flush();
  }

  /** Stops reporting events of the last request. */
  forget(): void {
    this.#connection.forget();
  }

  flush(): void {
    if (this.#unsent.length === 0 || this.#isOver) return;
    const [first, ...more] = this.#unsent;
    this.#unsent = [];
    this.#socket.write(
      more.length === 0 ? (first as Uint8Array) : Buffer.concat([first as Uint8Array, ...more]),
    );
    if (this.#socket.unsentBytes > MAX_UNSENT_BYTES) this.#break("http2: too many control frames", false);
  }

  /** Closes after a complete answer, and lets the server close first (RFC 9113 section 6.8). */
  leave(): void {
    if (this.#isOver) return;
    this.#unsent.push(GOAWAY_BYTES);
    this.flush();
    if (this.#isOver) return;
    this.#isOver = true;
    closeAfterServer(this.#socket);
  }

  /** Closes the connection and reports no more events. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
  }

  #onData(chunk: Uint8Array): void {
    try {
      this.#connection.push(chunk);
    } catch (error) {
      if (!(error instanceof Http2Error)) throw error;
      this.#break(http2ErrorText(error), false);
      return;
    }
    this.flush();
  }

  #break(text: string, isEof: boolean): void {
    if (this.#isOver) return;
    this.close();
    this.#handler.onBroken(text, isEof);
  }
}

/** Go's HTTP/2 words for a server's fault. A probe's request is always the first stream. */
function http2ErrorText({ fault, code, message }: Http2Error): string {
  switch (fault) {
    case "connection":
      return `connection error: ${errorCodeName(code)}`;
    case "stream":
      return streamErrorText(code, message);
    case "frame-too-large":
      return TOO_LARGE;
    case "looks-like-http1":
      return `http2: failed reading the frame payload: ${TOO_LARGE}, note that the frame header looked like an HTTP/1.1 header`;
    case "header-list-too-large":
      return "http2: response header list larger than advertised limit";
  }
}

/** Go's words for the end of the probe's only stream. */
export function streamErrorText(code: number, reason: string): string {
  return `stream error: stream ID 1; ${errorCodeName(code)}${reason === "" ? "" : `; ${reason}`}`;
}
