import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { ProtocolError } from "@sluice/protocols";
import {
  RST,
  type SpdyLimits,
  SpdySession,
  type SpdyStream,
  type SpdyStreamHandler,
} from "@sluice/protocols/spdy";
import { CLOSE, type WebSocketLimits } from "@sluice/protocols/websocket";
import type { SessionLifecycle } from "../../lifecycle.ts";
import { MessageSide, SpdySide, type TunnelSide, type TunnelSideEnd } from "../tunnel-sides.ts";

export interface SpdyPeerOptions {
  readonly carries: "spdy" | "messages";
  readonly webSocketLimits: WebSocketLimits;
  readonly spdyLimits: SpdyLimits;
}

interface SpdyPeerHandler {
  /**
   * The client opened a stream; a returned number refuses it. Absent for a node, which opens none.
   */
  onStream?(stream: SpdyStream): SpdyStreamHandler | number;
  /**
   * Called once, after every open stream's own end. `isProtocolError`: the peer broke SPDY or
   * WebSocket.
   */
  onEnd(end: TunnelSideEnd & { readonly isProtocolError: boolean }): void;
}

/** A SPDY session that ends here: over one side's connection, or its WebSocket. */
export class SpdyPeer {
  readonly #side: TunnelSide;
  readonly #spdy: SpdySession;
  readonly #handler: SpdyPeerHandler;
  #unsent: Uint8Array[] = [];
  #isBatching = false;
  #isOver = false;

  constructor(
    peer: "client" | "node",
    { socket }: UpgradedConnection,
    options: SpdyPeerOptions,
    life: SessionLifecycle,
    handler: SpdyPeerHandler,
  ) {
    this.#handler = handler;
    const ends = {
      onBytes: (bytes: Uint8Array) => this.#decode(bytes),
      onText: () => this.#end({ how: `the ${peer} sent a text message into a tunnel` }, true),
      onEnd: (end: TunnelSideEnd) => this.#end(end, end.webSocket?.isProtocolError === true),
    };
    this.#side =
      options.carries === "spdy"
        ? new SpdySide(peer, socket, ends, life)
        : new MessageSide(peer, socket, ends, life, options.webSocketLimits);
    this.#spdy = new SpdySession(
      peer === "client" ? "server" : "client",
      {
        send: (bytes) => this.#send(bytes),
        onStream: (stream) => handler.onStream?.(stream) ?? RST.REFUSED_STREAM,
      },
      options.spdyLimits,
    );
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get socket() {
    return this.#side.socket;
  }

  get hasSentEnd() {
    return this.#side.hasSentEnd;
  }

  /** Sends the frames that the chunk causes as one message. */
  receive(chunk: Uint8Array): void {
    if (!this.#isOver) this.batch(() => this.#side.receive(chunk));
  }

  /** Sends what `work` sends as one message. */
  batch(work: () => void): void {
    if (this.#isBatching) {
      work();
      return;
    }
    this.#isBatching = true;
    try {
      work();
    } finally {
      this.#isBatching = false;
      this.#flush();
    }
  }

  openStream(headers: readonly (readonly [string, string])[], handler: SpdyStreamHandler): SpdyStream {
    return this.#spdy.openStream(headers, handler);
  }

  ping(): void {
    this.#spdy.ping();
  }

  tick(nowMs: number): void {
    if (!this.#isOver) this.#side.tick(nowMs);
  }

  /** Sends GOAWAY after everything else, and ends the connection. */
  finish(closeCode: number = CLOSE.NORMAL, reason = "", goAway?: number): void {
    if (!this.#isOver) {
      this.#spdy.goAway(goAway);
      this.#flush();
    }
    this.#isOver = true;
    this.#side.finish(closeCode, reason, true);
  }

  #decode(bytes: Uint8Array): void {
    try {
      this.#spdy.receive(bytes);
      if (this.#spdy.isOver) this.#end({ how: "GOAWAY" }, false);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end({ how: error.message }, true);
    }
  }

  #send(bytes: Uint8Array): void {
    // Copied before the call ends: a chunk's memory is reused, and masking changes what is sent.
    this.#unsent.push(bytes);
    if (!this.#isBatching) this.#flush();
  }

  #flush(): void {
    if (this.#unsent.length === 0) return;
    const parts = this.#unsent;
    this.#unsent = [];
    if (this.socket.writable) this.#side.send(Buffer.concat(parts));
  }

  #end(end: TunnelSideEnd, isProtocolError: boolean): void {
    if (this.#isOver) return;
    this.#flush();
    this.#isOver = true;
    this.#spdy.receiveEnd();
    this.#handler.onEnd({ ...end, isProtocolError });
  }
}
