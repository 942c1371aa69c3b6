import {
  CLIENT_PREFACE_BYTES,
  ClientConnection,
  type ClientConnectionHandler,
  encodeFrame,
  FRAME,
  Http2Error,
} from "../../../protocols/http2/index.ts";
import { closeAfterServer } from "../close-after-server.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import { http2ErrorText } from "./http2-error-text.ts";

/** What happens on a connection, and its end. */
export interface Http2LinkHandler extends ClientConnectionHandler {
  /** The connection is over before it was closed here; in Go's words. `isEof`: the server just ended it. */
  onBroken(text: string, isEof: boolean): void;
}

/** No stream of the server's was taken, and nothing is wrong. */
const GOAWAY_BYTES = encodeFrame(FRAME.GOAWAY, 0, 0, new Uint8Array(8));

/** Answers to PINGs and SETTINGS that a server asks for and does not read. */
export const MAX_UNSENT_BYTES = 64 * 1024;

/**
 * An HTTP/2 connection of one probe on a connected socket, plain or TLS. What is to be said together is one write: a server that wants
 * none of it hangs up after the first.
 */
export class Http2Link {
  readonly #socket: ProbeSocket;
  readonly #handler: Http2LinkHandler;
  readonly #connection: ClientConnection;
  #unsent: Uint8Array[] = [CLIENT_PREFACE_BYTES];
  #isOver = false;

  /** Nothing is sent before `flush`. The socket belongs to the link from now on. */
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

  /** Frames for stream `nextStreamId`; sent by `flush`, or when what is being read has been read. */
  request(headers: Uint8Array, body?: Uint8Array): void {
    this.#connection.request(headers, body);
  }

  /** The preface and the first request in one, as `encodeFirstRequest` makes it: what is sent first, and at once. */
  begin(bytes: Uint8Array, bodyBytes = 0): void {
    this.#unsent = [];
    this.#connection.begin(bytes, bodyBytes);
    this.flush();
  }

  /** Nothing more is told of the request that was made last. */
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

  /** The same after a whole answer: the server is asked to close first (RFC 9113 section 6.8). */
  leave(): void {
    if (this.#isOver) return;
    this.#unsent.push(GOAWAY_BYTES);
    this.flush();
    if (this.#isOver) return;
    this.#isOver = true;
    closeAfterServer(this.#socket);
  }

  /** Nothing is told any more, and the connection is closed. */
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
