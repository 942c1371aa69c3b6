import type { Duplex } from "node:stream";
import type { SpdyConnection } from "@sluice/client/internal/sessions/spdy-connection";
import {
  parseStreamHeaders,
  type StreamPair,
  StreamPairing,
  timeoutText,
} from "@sluice/protocols/portforward";
import { RST, type SpdyStream, type SpdyStreamHandler } from "@sluice/protocols/spdy";
import { PauseGate } from "./command-session.ts";
import { ForwardedConnection, type ForwardTarget } from "./forwarded-connection.ts";
import { openSpdy, type ServingContext } from "./open-connection.ts";

/** A stream, and its data from before its partner arrived. */
interface ClientStream {
  readonly stream: SpdyStream;
  early: Uint8Array[];
  earlyBytes: number;
  hasEnded: boolean;
  connection: ForwardedConnection | undefined;
  /** Bytes received after the node stopped reading the stream; undefined while it reads. */
  unreadBytes: number | undefined;
}

/** Serves portforward.k8s.io on a socket, or on a tunnel, after the 101. */
export class SpdyPortForward {
  readonly #socket: Duplex;
  readonly #targetOf: (port: number) => ForwardTarget;
  readonly #context: ServingContext;
  readonly #connection: SpdyConnection;
  readonly #gate: PauseGate;
  readonly #pairing: StreamPairing<ClientStream>;
  readonly #connections = new Set<ForwardedConnection>();

  constructor(
    socket: Duplex,
    head: Uint8Array,
    targetOf: (port: number) => ForwardTarget,
    context: ServingContext,
  ) {
    const { clock, limits, sessions } = context;
    this.#socket = socket;
    this.#targetOf = targetOf;
    this.#context = context;
    this.#gate = new PauseGate(socket);
    this.#pairing = new StreamPairing(limits.streamCreationTimeoutMs);
    this.#connection = openSpdy(
      socket,
      { onStream: (stream) => this.#opened(stream), onEnd: () => this.#clientGone() },
      context,
    );
    sessions.add(this);
    clock.add(this);
    socket.on("drain", () => {
      for (const connection of this.#connections) connection.resumeReading();
    });
    socket.on("data", (chunk: Uint8Array) => this.#receive(chunk));
    this.#receive(head);
  }

  tick(nowMs: number): void {
    for (const connection of this.#connections) connection.tick(nowMs);
    for (const { requestId, error, data } of this.#pairing.expire(nowMs)) {
      error?.stream.write(new TextEncoder().encode(timeoutText("fake-node", requestId)));
      error?.stream.finish();
      data?.stream.reset();
      if (data !== undefined) this.#gate.release(data);
    }
  }

  abort(): void {
    this.#connection.abort();
    this.#clientGone();
  }

  #receive(chunk: Uint8Array): void {
    this.#socket.cork();
    this.#connection.receive(chunk);
    this.#socket.uncork();
  }

  #opened(stream: SpdyStream): SpdyStreamHandler | number {
    const headers = parseStreamHeaders(stream.id, stream.headers);
    if (!headers.ok) return RST.CANCEL;
    const client: ClientStream = {
      stream,
      early: [],
      earlyBytes: 0,
      hasEnded: false,
      connection: undefined,
      unreadBytes: undefined,
    };
    const result = this.#pairing.add(headers.value, client, this.#context.clock.now());
    if (result.type === "duplicate") {
      result.pending.error?.stream.write(new TextEncoder().encode(result.text));
      return { onData: () => {}, onEnd: () => {} };
    }
    if (result.type === "paired") {
      const { pair } = result;
      // Starts only after the reply to this stream.
      queueMicrotask(() => this.#forward(pair));
    }
    // The error stream only carries text to the client. Data that the client sends on it is
    // ignored.
    if (headers.value.streamType === "error") {
      return { onData: () => {}, onEnd: () => this.#pairing.remove(client) };
    }
    return {
      onData: (part, fin) => this.#received(client, part, fin),
      onEnd: () => {
        client.hasEnded = true;
        this.#pairing.remove(client);
        client.connection?.abort();
        this.#gate.release(client);
      },
    };
  }

  #received(client: ClientStream, part: Uint8Array, fin: boolean): void {
    if (client.unreadBytes !== undefined) {
      client.unreadBytes += part.length;
      // This lasts until the connection ends, because a reset would queue behind the unread data.
      if (client.unreadBytes > this.#context.limits.maxUnreadForwardBytes) this.#gate.hold(client);
    } else if (client.connection !== undefined) {
      client.connection.write(part);
      if (fin) client.connection.finish();
      return;
    }
    if (part.length > 0) client.early.push(part);
    client.earlyBytes += part.length;
    if (fin) client.early.push(END_OF_INPUT);
    if (client.earlyBytes > this.#context.limits.maxForwardBufferBytes) this.#gate.hold(client);
  }

  #forward({ error, data, port }: StreamPair<ClientStream>): void {
    if (data.hasEnded) {
      error.stream.finish();
      return;
    }
    const socket = this.#socket;
    const connection = new ForwardedConnection(
      {
        sendData: (part) => this.#corked(() => data.stream.write(part)),
        finishData: () => data.stream.finish(),
        resetData: () => data.stream.reset(),
        sendError: (text) => error.stream.write(new TextEncoder().encode(text)),
        finishError: () => error.stream.finish(),
        endReading: () => {
          data.unreadBytes = 0;
        },
        get isFull() {
          return socket.writableNeedDrain;
        },
        setBlocked: (isBlocked) => (isBlocked ? this.#gate.hold(data) : this.#gate.release(data)),
        onOver: () => this.#connections.delete(connection),
      },
      this.#targetOf(port),
      this.#context.limits,
      () => this.#context.clock.now(),
    );
    this.#connections.add(connection);
    data.connection = connection;
    const { early } = data;
    data.early = [];
    this.#gate.release(data);
    for (const part of early) {
      if (part === END_OF_INPUT) connection.finish();
      else connection.write(part);
    }
  }

  #corked(send: () => void): void {
    this.#socket.cork();
    send();
    this.#socket.uncork();
  }

  #clientGone(): void {
    this.#context.clock.delete(this);
    this.#context.sessions.delete(this);
    for (const connection of [...this.#connections]) connection.abort();
    this.#connection.finish();
  }
}

const END_OF_INPUT = new Uint8Array(0);
