import {
  encodeResize,
  type RemoteCommandVersion,
  type RequestedStreams,
  type StreamType,
  spdyStreamTypes,
  type TerminalSize,
} from "@sluice/protocols/remotecommand";
import { defaultSpdyLimits, type SpdyStream, type StreamEnd } from "@sluice/protocols/spdy";
import { type CommandLink, type CommandLinkHandler, MAX_CLOSE_MS } from "./command-link.ts";
import type { UpgradedConnection } from "./connect.ts";
import { releaseChunk } from "./net/reused-reads.ts";
import type { SessionTimes } from "./session-times.ts";
import { SessionError } from "./sessions/session-error.ts";
import { SpdyConnection, type SpdyConnectionEnd } from "./sessions/spdy-connection.ts";

/** The largest payload of a DATA frame. */
const MAX_FRAME_BYTES = 32 * 1024;
/**
 * Limits the answers to a flood of PINGs that wait for a server that does not read; input stops at
 * the socket's high-water mark.
 */
const MAX_QUEUED_BYTES = 1024 * 1024;
/** A server closes TCP as soon as the streams have ended. */
const LINGER_TIMES = { lingerIdleMs: MAX_CLOSE_MS, lingerMaxMs: 2 * MAX_CLOSE_MS };

/** A session's streams over SPDY/3.1, all created at once in client-go's order. */
export class SpdyCommandLink implements CommandLink {
  readonly #connection: UpgradedConnection;
  readonly #spdy: SpdyConnection;
  readonly #handler: CommandLinkHandler;
  readonly #times: SessionTimes;
  readonly #types: readonly StreamType[];
  readonly #streams = new Map<StreamType, SpdyStream>();
  /** Streams that are read to their end. A server may never end its side of stdin and resize. */
  readonly #awaited: Set<StreamType>;
  readonly #unaccepted: Set<StreamType>;
  #startedMs = 0;
  #isErrorStreamOrderly = false;
  #isOver = false;

  constructor(
    connection: UpgradedConnection,
    version: RemoteCommandVersion,
    requested: RequestedStreams,
    handler: CommandLinkHandler,
    times: SessionTimes,
  ) {
    this.#connection = connection;
    this.#handler = handler;
    this.#times = times;
    this.#types = spdyStreamTypes(requested, version);
    this.#unaccepted = new Set(this.#types);
    this.#awaited = new Set(this.#types.filter((type) => type !== "stdin" && type !== "resize"));
    this.#spdy = new SpdyConnection(
      connection.socket,
      { onEnd: (end) => this.#connectionEnded(end) },
      {
        role: "client",
        limits: defaultSpdyLimits,
        lingerTimes: LINGER_TIMES,
        clock: times.clock,
        pingIntervalMs: times.pingIntervalMs,
        maxQueuedBytes: MAX_QUEUED_BYTES,
      },
    );
  }

  start(reusesReads: boolean): void {
    const { socket, head } = this.#connection;
    this.#startedMs = this.#times.clock.now();
    this.#times.clock.add(this);
    socket.on("data", (chunk: Buffer) => {
      this.#spdy.receive(chunk);
      if (reusesReads) releaseChunk(socket);
    });
    socket.on("drain", () => this.#handler.onDrain());
    socket.cork();
    for (const type of this.#types) this.#streams.set(type, this.#open(type));
    socket.uncork();
    // Resumes before it reads the head, whose frames may pause the socket.
    socket.resume();
    if (head.byteLength > 0) this.#spdy.receive(head);
  }

  tick(nowMs: number): void {
    this.#spdy.tick(nowMs);
    if (this.#unaccepted.size === 0 || nowMs - this.#startedMs < this.#times.streamCreationMs) return;
    this.#spdy.abort();
    const missing = [...this.#unaccepted].join(", ");
    this.#end(new SessionError("stream-timeout", `the server did not accept the streams: ${missing}`));
  }

  sendInput(part: Uint8Array): boolean {
    const { socket } = this.#connection;
    socket.cork();
    const stdin = this.#streams.get("stdin");
    for (let offset = 0; offset < part.byteLength; offset += MAX_FRAME_BYTES) {
      stdin?.write(part.subarray(offset, offset + MAX_FRAME_BYTES));
    }
    socket.uncork();
    return this.#isOver || !socket.writableNeedDrain;
  }

  endInput(): void {
    this.#streams.get("stdin")?.finish();
  }

  resize(size: TerminalSize): void {
    this.#streams.get("resize")?.write(encodeResize(size));
  }

  pause(): void {
    this.#connection.socket.pause();
  }

  resume(): void {
    this.#connection.socket.resume();
  }

  close(): void {
    if (!this.#leave()) return;
    this.#spdy.finish();
    this.#connection.socket.unref();
  }

  onceClosed(done: () => void): void {
    const { socket } = this.#connection;
    if (socket.closed) done();
    else socket.once("close", done);
  }

  abort(): void {
    if (this.#leave()) this.#spdy.abort();
  }

  #open(type: StreamType): SpdyStream {
    return this.#spdy.openStream([["streamtype", type]], {
      onData: (part, fin) => {
        if (part.byteLength > 0) this.#data(type, part);
        if (fin) this.#streamEnded(type, true);
      },
      onEnd: (end: StreamEnd) => this.#streamEnded(type, end.type === "reset"),
      onReply: () => this.#unaccepted.delete(type),
    });
  }

  #data(type: StreamType, part: Uint8Array): void {
    this.#unaccepted.delete(type);
    if (this.#isOver) return;
    if (type === "stdout" || type === "stderr") this.#handler.onOutput(type, part);
    else if (type === "error") this.#handler.onStatus(part);
  }

  /** `isOrderly`: by FIN or RST, not by a lost connection. */
  #streamEnded(type: StreamType, isOrderly: boolean): void {
    if (!isOrderly) return;
    this.#unaccepted.delete(type);
    if (type === "error") this.#isErrorStreamOrderly = true;
    if (!this.#awaited.delete(type) || this.#awaited.size > 0) return;
    this.#end(new SessionError("missing-status", "the server ended the session without a status"));
  }

  #connectionEnded({ isProtocolError, isClean, reason }: SpdyConnectionEnd): void {
    const message = `the server's connection ended: ${reason}`;
    const code = isProtocolError ? "protocol-error" : isClean ? "missing-status" : "connection-lost";
    this.#end(new SessionError(code, message));
  }

  #end(error: SessionError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#times.clock.delete(this);
    this.#spdy.finish();
    this.#connection.socket.unref();
    this.#handler.onEnd({ isOrderly: this.#isErrorStreamOrderly, error });
  }

  #leave(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#times.clock.delete(this);
    return true;
  }
}
