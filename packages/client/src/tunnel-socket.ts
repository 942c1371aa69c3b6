import { Duplex } from "node:stream";
import { CLOSE } from "@sluice/protocols/websocket";
import { ClientWebSocket, type ClientWebSocketEnd } from "./client-websocket.ts";
import type { UpgradedConnection } from "./connect.ts";
import type { SessionTimes } from "./session-times.ts";

/**
 * The client's end of a byte stream inside binary WebSocket messages of at most 32 KiB. Ending it
 * closes the WebSocket with 1000. Data written together leaves in one write.
 */
export class TunnelSocket extends Duplex {
  readonly #webSocket: ClientWebSocket;
  #whenDrained: (() => void) | undefined;

  constructor(connection: UpgradedConnection, times: SessionTimes) {
    super();
    this.#webSocket = new ClientWebSocket(
      connection,
      {
        onMessage: (part, _isFirst, _isLast, isText) => this.#message(part, isText),
        onDrain: () => this.#drained(),
        onEnd: (end) => this.#ended(end),
      },
      // Inside a tunnel, SPDY's own PINGs are the heartbeat.
      { ...times, pingIntervalMs: Number.POSITIVE_INFINITY, deadlineMs: Number.POSITIVE_INFINITY },
    );
    this.#webSocket.start();
  }

  override _read(): void {
    this.#webSocket.resume();
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    this.#webSocket.sendMessages(undefined, chunk);
    if (this.#webSocket.needsDrain) this.#whenDrained = done;
    else done();
  }

  override _writev(chunks: { chunk: Uint8Array }[], done: () => void): void {
    const [only] = chunks;
    const bytes =
      chunks.length === 1 && only !== undefined
        ? only.chunk
        : Buffer.concat(chunks.map(({ chunk }) => chunk));
    this._write(bytes, "binary", done);
  }

  override _final(done: () => void): void {
    this.#webSocket.close();
    // The peer answers a Close by ending TCP; no frame follows.
    this.push(null);
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!this.#webSocket.isOver) this.#webSocket.abort();
    this.#drained();
    done(error);
  }

  #message(part: Uint8Array, isText: boolean): void {
    if (isText) this.destroy(new Error("invalid message type received"));
    else if (part.byteLength > 0 && !this.push(part)) this.#webSocket.pause();
  }

  #drained(): void {
    const done = this.#whenDrained;
    this.#whenDrained = undefined;
    done?.();
  }

  #ended({ isClean, code, reason }: ClientWebSocketEnd): void {
    this.#drained();
    if (isClean && code === CLOSE.NORMAL) this.push(null);
    else this.destroy(new Error(`websocket: close ${code}: ${reason}`));
  }
}
