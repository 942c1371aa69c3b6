import { Duplex } from "node:stream";
import type { WebSocketConnection } from "@sluice/client/internal/sessions/websocket-connection";
import { CLOSE } from "@sluice/protocols/websocket";
import { openWebSocket, type ServingContext } from "./open-connection.ts";

/**
 * The byte stream inside a WebSocket tunnel. Binary messages carry its bytes at arbitrary
 * boundaries. Ending it closes the WebSocket with 1000.
 */
export class TunnelSocket extends Duplex {
  readonly #socket: Duplex;
  readonly #webSocket: WebSocketConnection;
  #hasEnded = false;

  constructor(socket: Duplex, head: Uint8Array, context: ServingContext) {
    super();
    this.#socket = socket;
    this.#webSocket = openWebSocket(
      socket,
      {
        onMessage: (part, _isFirst, _isLast, isText) => this.#message(part, isText),
        onEnd: ({ isClean, reason }) => (isClean ? this.#endReading() : this.destroy(new Error(reason))),
      },
      context,
    );
    socket.on("close", () => this.#endReading());
    socket.on("data", (chunk: Uint8Array) => this.#webSocket.receive(chunk));
    this.#webSocket.receive(head);
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    this.#socket.cork();
    this.#webSocket.sendMessage(undefined, chunk);
    this.#socket.uncork();
    this.#whenTaken(done);
  }

  /** Sends frame headers and payloads that were written together in one message. */
  override _writev(chunks: { chunk: Uint8Array }[], done: () => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), "binary", done);
  }

  override _final(done: () => void): void {
    this.#webSocket.close(CLOSE.NORMAL, "");
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#webSocket.isOver) this.#webSocket.abort();
    done(error);
  }

  #whenTaken(done: () => void): void {
    if (!this.#socket.writableNeedDrain || this.#socket.destroyed) {
      done();
      return;
    }
    const taken = (): void => {
      this.#socket.off("drain", taken);
      this.#socket.off("close", taken);
      done();
    };
    this.#socket.on("drain", taken);
    this.#socket.on("close", taken);
  }

  #message(part: Uint8Array, isText: boolean): void {
    if (isText) this.destroy(new Error("invalid message type received"));
    else if (part.length > 0 && !this.#hasEnded && !this.push(part)) this.#socket.pause();
  }

  #endReading(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.push(null);
  }
}
