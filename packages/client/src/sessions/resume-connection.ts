import type { Duplex } from "node:stream";
import { ProtocolError } from "@sluice/protocols";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  applyMask,
  CLOSE,
  closeCodeOf,
  encodeClose,
  encodeControlFrame,
  MAX_FRAME_HEADER_BYTES,
  NO_CLOSE_CODE,
  OPCODE,
  WebSocketFrameDecoder,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";
import { clientFailureOf } from "../net/abort-socket.ts";
import { headerSlab, nextMaskKey } from "../net/frame-memory.ts";
import { finishAndLinger, type LingerTimes } from "../net/linger.ts";
import type { SessionClock } from "../net/session-clock.ts";
import type { UpgradedConnection } from "../net/upgraded-connection.ts";

/** Each side sends frames of up to 64 KiB. Only an intermediary merges them into larger ones. */
const LIMITS = { maxFrameBytes: 1024 * 1024, maxMessageBytes: 4 * 1024 * 1024, maxFragments: 1024 };

interface ResumeConnectionHandler {
  onMessage(part: Uint8Array, isFirst: boolean, isLast: boolean): void;
  /**
   * Called once when the connection is unusable; never after `close` or `abandon`. `isFinal`: a new
   * connection would not help.
   */
  onGone(reason: string, isFinal: boolean): void;
}

export interface ResumeConnectionOptions {
  /** This side's role. A client masks its frames. */
  readonly role: "client" | "server";
  readonly clock: SessionClock;
  readonly lingerTimes: LingerTimes;
  /** Interval of PINGs, in milliseconds. Both sides send them, so that each hears from the other. */
  readonly pingIntervalMs: number;
  /**
   * A peer that sent nothing for this long, in milliseconds, is dead. The gateway always reads, so it
   * cannot miss bytes.
   */
  readonly silenceMs: number;
}

/**
 * One connection of a resumable session: a WebSocket whose binary messages are resume frames. It is
 * always read.
 */
export class ResumeConnection {
  readonly #socket: Duplex;
  readonly #head: Uint8Array;
  readonly #handler: ResumeConnectionHandler;
  readonly #options: ResumeConnectionOptions;
  readonly #decoder: WebSocketFrameDecoder;
  #owedPong: Uint8Array | undefined;
  #hasHeard = false;
  #lastHeardMs: number;
  #lastPingMs: number;
  #isOver = false;
  #wasSilent = false;

  constructor(
    { socket, head }: UpgradedConnection,
    handler: ResumeConnectionHandler,
    options: ResumeConnectionOptions,
  ) {
    this.#socket = socket;
    this.#head = head;
    this.#handler = handler;
    this.#options = options;
    this.#lastHeardMs = this.#lastPingMs = options.clock.now();
    this.#decoder = new WebSocketFrameDecoder(
      options.role,
      {
        onMessage: (part, isFirst, isLast, isText) => this.#message(part, isFirst, isLast, isText),
        onPing: (payload) => this.#answerPing(payload),
        onPong: () => {},
        onClose: (code, reason) => this.#closedByPeer(code, reason),
      },
      LIMITS,
    );
  }

  /** True if the connection was dropped because of silence, and not ended by the peer or a hop. */
  get wasSilent(): boolean {
    return this.#wasSilent;
  }

  /** Starts reading. Delivers nothing before that. */
  start(): void {
    const socket = this.#socket;
    socket.on("data", this.#receive);
    socket.on("drain", this.#drained);
    socket.on("end", this.#ended);
    socket.on("error", this.#failed);
    socket.on("close", this.#closed);
    if (this.#head.byteLength > 0) this.#receive(this.#head);
    if (!this.#isOver) socket.resume();
  }

  /** Sends one message. Copies the header, but not the payload. */
  send(header: Uint8Array, payload: Uint8Array = NOTHING): void {
    if (this.#isOver || !this.#socket.writable) return;
    if (this.#options.role === "client") this.#sendMasked(header, payload);
    else this.#sendPlain(header, payload);
  }

  /** Collects everything that is sent until `uncork`, and sends it together. */
  cork(): void {
    this.#socket.cork();
  }

  uncork(): void {
    this.#socket.uncork();
  }

  tick(nowMs: number): void {
    if (this.#isOver) return;
    if (this.#hasHeard) this.#lastHeardMs = nowMs;
    this.#hasHeard = false;
    if (nowMs - this.#lastHeardMs >= this.#options.silenceMs) {
      this.#wasSilent = true;
      this.#gone("nothing was heard of the peer for too long", false);
      return;
    }
    // A peer that gets data needs no PING.
    if (nowMs - this.#lastPingMs < this.#options.pingIntervalMs || this.#socket.writableNeedDrain) return;
    this.#lastPingMs = nowMs;
    this.#sendControl(OPCODE.PING, NOTHING);
  }

  /** Sends Close 1000 last: the session will not be resumed. */
  close(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#closeWith(CLOSE.NORMAL, "");
  }

  /** Drops the connection at once, because a new one replaces it. */
  abandon(): void {
    this.#isOver = true;
    this.#release();
    this.#socket.destroy();
  }

  /** This connection no longer keeps the process alive. */
  unref(): void {
    (this.#socket as { unref?: () => void }).unref?.();
  }

  #sendPlain(header: Uint8Array, payload: Uint8Array): void {
    const start = headerSlab.take(MAX_FRAME_HEADER_BYTES + header.byteLength);
    const at = writeFrameHeader(start, 0, OPCODE.BINARY, header.byteLength + payload.byteLength, true);
    start.set(header, at);
    this.#socket.write(start.subarray(0, at + header.byteLength));
    if (payload.byteLength > 0) this.#socket.write(payload);
  }

  #sendMasked(header: Uint8Array, payload: Uint8Array): void {
    const bytes = header.byteLength + payload.byteLength;
    const frame = Buffer.allocUnsafe(MAX_FRAME_HEADER_BYTES + bytes);
    const maskKey = nextMaskKey();
    const start = writeMaskedFrameHeader(frame, 0, OPCODE.BINARY, bytes, true, maskKey);
    frame.set(header, start);
    frame.set(payload, start + header.byteLength);
    applyMask(frame.subarray(start, start + bytes), maskKey, 0);
    this.#socket.write(frame.subarray(0, start + bytes));
  }

  readonly #receive = (chunk: Uint8Array): void => {
    if (this.#isOver) return;
    this.#hasHeard = true;
    this.#socket.cork();
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      if (this.#isOver) return;
      this.#isOver = true;
      this.#closeWith(closeCodeOf(error), error.message);
      this.#handler.onGone(error.message, true);
    } finally {
      this.#socket.uncork();
    }
  };

  readonly #drained = (): void => {
    const payload = this.#owedPong;
    this.#owedPong = undefined;
    if (payload !== undefined) this.#sendControl(OPCODE.PONG, payload);
  };

  readonly #ended = (): void => this.#gone("the peer ended the connection without a Close frame", false);
  readonly #failed = (error: Error): void => this.#gone(clientFailureOf(error), false);
  readonly #closed = (): void => this.#gone("the connection closed", false);

  #message(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void {
    if (this.#isOver) return;
    if (!isText) {
      this.#handler.onMessage(part, isFirst, isLast);
      return;
    }
    this.#isOver = true;
    this.#closeWith(CLOSE.UNSUPPORTED_DATA, "only binary messages are expected");
    this.#handler.onGone("the peer sent a text message", true);
  }

  /** While the peer does not read, only its newest PING is remembered (RFC 6455 section 5.5.3). */
  #answerPing(payload: Uint8Array): void {
    if (this.#socket.writableNeedDrain) this.#owedPong = new Uint8Array(payload);
    else this.#sendControl(OPCODE.PONG, payload);
  }

  #sendControl(opcode: number, payload: Uint8Array): void {
    if (this.#isOver || !this.#socket.writable) return;
    const maskKey = this.#options.role === "client" ? nextMaskKey() : undefined;
    this.#socket.write(encodeControlFrame(opcode, payload, maskKey));
  }

  /** Only 1000 comes from the peer itself. Restarting proxies send 1001 and 1012 in its place. */
  #closedByPeer(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#closeWith(code === NO_CLOSE_CODE ? CLOSE.NORMAL : code, "");
    this.#handler.onGone(`the peer closed with ${code} ${reason}`.trim(), code === CLOSE.NORMAL);
  }

  #gone(reason: string, isFinal: boolean): void {
    if (this.#isOver) return;
    this.abandon();
    this.#handler.onGone(reason, isFinal);
  }

  #closeWith(code: number, reason: string): void {
    this.#release();
    const maskKey = this.#options.role === "client" ? nextMaskKey() : undefined;
    if (this.#socket.writable) this.#socket.write(encodeClose(code, reason, maskKey));
    finishAndLinger(this.#socket, this.#options.lingerTimes, this.#options.clock);
    if (this.#options.role === "client") this.unref();
  }

  #release(): void {
    const socket = this.#socket;
    socket.off("data", this.#receive).off("drain", this.#drained);
    socket.off("end", this.#ended).off("error", this.#failed).off("close", this.#closed);
    // Without a listener a late ECONNRESET would end the process.
    socket.on("error", () => {});
  }
}
