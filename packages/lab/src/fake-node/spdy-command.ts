import type { Duplex } from "node:stream";
import type { SpdyConnection } from "@sluice/client/internal/sessions/spdy-connection";
import { NOTHING } from "@sluice/protocols/bytes";
import { ResizeDecoder, type StreamType, spdyStreamTypes } from "@sluice/protocols/remotecommand";
import type { SpdyStream, SpdyStreamHandler } from "@sluice/protocols/spdy";
import type { CommandExit } from "./command-process.ts";
import {
  type CommandService,
  CommandSession,
  type CommandTransport,
  failureFrame,
} from "./command-session.ts";
import { sendInChunks } from "./limits.ts";
import { openSpdy, type ServingContext } from "./open-connection.ts";

/**
 * Serves an exec or attach over SPDY on a socket after its 101. The command starts when all streams
 * exist.
 */
export class SpdyCommand implements CommandTransport {
  readonly socket: Duplex;
  readonly #service: CommandService;
  readonly #connection: SpdyConnection;
  readonly #session: CommandSession;
  readonly #streams = new Map<StreamType, SpdyStream>();
  readonly #resizes = new ResizeDecoder();
  readonly #deadlineMs: number;
  #isComplete = false;

  constructor(socket: Duplex, head: Uint8Array, service: CommandService, context: ServingContext) {
    this.socket = socket;
    this.#service = service;
    const { clock, limits, sessions } = context;
    this.#connection = openSpdy(
      socket,
      { onStream: (stream) => this.#opened(stream), onEnd: () => this.#clientGone() },
      context,
    );
    this.#session = new CommandSession(this, service.start, limits, () => {
      clock.delete(this);
      sessions.delete(this.#session);
    });
    this.#deadlineMs = clock.now() + limits.streamCreationTimeoutMs;
    sessions.add(this.#session);
    clock.add(this);
    socket.on("data", (chunk: Uint8Array) => this.#receive(chunk));
    this.#receive(head);
  }

  /** Kubernetes' servers give up here but leave the connection open forever; we end it. */
  tick(nowMs: number): void {
    if (this.#isComplete || nowMs < this.#deadlineMs) return;
    this.#connection.finish();
    this.#session.clientGone();
  }

  sendOutput(stream: "stdout" | "stderr", part: Uint8Array): void {
    sendInChunks(part, (chunk) => this.#streams.get(stream)?.write(chunk));
  }

  endOutput(stream: "stdout" | "stderr"): void {
    this.#streams.get(stream)?.finish();
  }

  /**
   * Follows the reference's order: outputs finished, status without FIN, RST of open streams,
   * GOAWAY, then the socket's FIN.
   */
  finish(exit: CommandExit): void {
    this.#streams.get("error")?.write(failureFrame(exit, this.#service));
    for (const stream of this.#streams.values()) if (stream.isWritable) stream.reset();
    this.#connection.finish();
  }

  abort(): void {
    this.#connection.abort();
  }

  #receive(chunk: Uint8Array): void {
    this.socket.cork();
    this.#connection.receive(chunk);
    this.socket.uncork();
  }

  #opened(stream: SpdyStream): SpdyStreamHandler {
    const { requested, version } = this.#service;
    const expected = spdyStreamTypes(requested, version);
    const type = expected.find((name) => name === stream.headers.get("streamtype"));
    // Answers an unknown stream but does not count it.
    if (type === undefined) return { onData: () => {}, onEnd: () => {} };
    this.#streams.set(type, stream);
    if (!this.#isComplete && expected.every((name) => this.#streams.has(name))) {
      this.#isComplete = true;
      // Starts only after the reply to this stream, and after the data that followed it.
      queueMicrotask(() => this.#session.start());
    }
    return {
      onData: (part, fin) => this.#received(type, part, fin),
      onEnd: () => this.#received(type, NOTHING, true),
    };
  }

  #received(type: StreamType, part: Uint8Array, fin: boolean): void {
    if (type === "stdin") {
      this.#session.receiveStdin(part);
      if (fin) this.#session.receiveStdinEnd();
    } else if (type === "resize") {
      for (const size of this.#resizes.push(part)) this.#session.receiveResize(size);
    }
  }

  #clientGone(): void {
    this.#connection.finish();
    this.#session.clientGone();
  }
}
