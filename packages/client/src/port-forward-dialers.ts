import { Duplex } from "node:stream";
import { PORT_FORWARD_PROTOCOL, tunnelSubprotocolOf } from "@sluice/protocols/portforward";
import { CLOSE } from "@sluice/protocols/websocket";
import { ClientWebSocket, type ClientWebSocketEnd } from "./client-websocket.ts";
import { type DialRequest, dial, shouldFallBack, type UpgradedConnection } from "./connect.ts";
import { dialWith } from "./dial-with.ts";
import type { ExecutorOptions } from "./executors.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import { PortForwardConnection } from "./port-forward-connection.ts";
import { defaultSessionTimes, type SessionTimes } from "./session-times.ts";
import type { Target } from "./target.ts";

/**
 * The client's end of a byte stream inside binary WebSocket messages of at most 32 KiB. Ending it
 * closes the WebSocket with 1000. Data written together leaves in one write.
 */
class TunnelSocket extends Duplex {
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

/** Opens port-forward sessions with one pod. Throws ConnectError. */
export interface PortForwardDialer {
  dial(signal?: AbortSignal): Promise<PortForwardConnection>;
}

/** One transport to the port-forward path of one pod. */
class PathDialer {
  readonly #target: Target;
  readonly #path: string;
  readonly #options: ExecutorOptions;
  protected readonly times: SessionTimes;

  constructor(target: Target, path: string, options: ExecutorOptions = {}) {
    this.#target = target;
    this.#path = path;
    this.#options = options;
    this.times = { ...defaultSessionTimes, ...options.times };
  }

  protected upgrade(
    transport: DialRequest["transport"],
    protocol: string,
    signal: AbortSignal | undefined,
  ): Promise<UpgradedConnection> {
    const { dialTimeoutMs, responseHeaderTimeoutMs, resume } = this.#options;
    const times = { dialTimeoutMs, responseHeaderTimeoutMs };
    const request = { path: this.#path, transport, protocols: [protocol], signal, ...times };
    return transport === "websocket" ? dialWith(this.#target, request, resume) : dial(this.#target, request);
  }
}

/** SPDY inside a WebSocket: API servers since 1.31, and gateways. */
export class TunnelDialer extends PathDialer implements PortForwardDialer {
  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    const connection = await this.upgrade("websocket", tunnelSubprotocolOf(PORT_FORWARD_PROTOCOL), signal);
    const tunnel = new TunnelSocket(connection, this.times);
    // A resumable connection checks its peer itself.
    const deadlineMs = connection.isResumable ? Number.POSITIVE_INFINITY : this.times.deadlineMs;
    return new PortForwardConnection(tunnel, Buffer.alloc(0), "websocket", { ...this.times, deadlineMs });
  }
}

/** Bare SPDY/3.1: every API server and kubelet. */
export class SpdyDialer extends PathDialer implements PortForwardDialer {
  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    const { socket, head, protocol } = await this.upgrade("spdy", PORT_FORWARD_PROTOCOL, signal);
    if (protocol !== PORT_FORWARD_PROTOCOL) {
      socket.destroy();
      const text = `unable to negotiate protocol: client supports "${PORT_FORWARD_PROTOCOL}", server returned ${JSON.stringify(protocol)}`;
      throw new ConnectError("handshake", text, { httpStatus: 101 });
    }
    return new PortForwardConnection(socket, head, "spdy", this.times);
  }
}

/** Tries the first, then the second if the first could not upgrade: see `shouldFallBack`. */
export class FallbackDialer implements PortForwardDialer {
  readonly #primary: PortForwardDialer;
  readonly #secondary: PortForwardDialer;
  readonly #mayFallBack: (error: unknown) => boolean;

  constructor(
    primary: PortForwardDialer,
    secondary: PortForwardDialer,
    mayFallBack: (error: unknown) => boolean = shouldFallBack,
  ) {
    this.#primary = primary;
    this.#secondary = secondary;
    this.#mayFallBack = mayFallBack;
  }

  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    try {
      return await this.#primary.dial(signal);
    } catch (error) {
      if (!this.#mayFallBack(error)) throw error;
      return this.#secondary.dial(signal);
    }
  }
}
