import { ProtocolError } from "@sluice/protocols";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  applyMask,
  CLOSE,
  closeCodeOf,
  encodeClose,
  encodeControlFrame,
  NO_CLOSE_CODE,
  OPCODE,
  WebSocketFrameDecoder,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";
import { MAX_CLOSE_MS } from "./command-link.ts";
import type { UpgradedConnection } from "./connect.ts";
import type { UpgradedSocket } from "./http/upgrade/upgrade-request.ts";
import { nextMaskKey, releaseFrameMemory, takeFrameMemory } from "./net/frame-memory.ts";
import { releaseChunk } from "./net/reused-reads.ts";
import type { SessionTimes } from "./session-times.ts";
import type { SessionErrorCode } from "./sessions/session-error.ts";

/**
 * The largest frame that Kubernetes peers send. A multiple of the word size, so that masking works
 * word by word, and of TLS records.
 */
const MAX_FRAME_BYTES = 32 * 1024;
/** The header of a masked frame with a 16-bit length (RFC 6455 section 5.2). */
const FRAME_HEADER_BYTES = 8;

/** How the WebSocket ended. `code` comes from the peer's Close frame, or is 1006. */
export interface ClientWebSocketEnd {
  readonly isClean: boolean;
  readonly code: number;
  readonly reason: string;
  /** Set if it did not end cleanly. */
  readonly cause?: SessionErrorCode;
}

interface ClientWebSocketHandler {
  onMessage(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void;
  /** The socket accepts more data. */
  onDrain(): void;
  /** Called once; never after our own `close` or `abort`. */
  onEnd(end: ClientWebSocketEnd): void;
}

/**
 * The client's side of one WebSocket. Sends every message as one frame, because golang.org/x/net
 * takes each frame for a message. Silence ends it (`deadlineMs`) only if nothing on our side can
 * delay the peer's answer: not while the socket is paused, and not while the peer may still have
 * input to read. TCP keepalive watches the connection then.
 */
export class ClientWebSocket {
  readonly #socket: UpgradedSocket;
  readonly #head: Buffer;
  readonly #handler: ClientWebSocketHandler;
  readonly #times: SessionTimes;
  readonly #deadlineMs: number;
  readonly #nextMaskKey: () => number;
  readonly #decoder: WebSocketFrameDecoder;
  #owedPong: Uint8Array | undefined;
  #lastPingMs: number;
  #lastHeardMs: number;
  #hasUnansweredInput = false;
  #isOver = false;

  constructor(connection: UpgradedConnection, handler: ClientWebSocketHandler, times: SessionTimes) {
    const { socket, head, isResumable = false } = connection;
    // The layer below (protocols/resume) then checks connections and masks.
    this.#deadlineMs = isResumable ? Number.POSITIVE_INFINITY : times.deadlineMs;
    this.#nextMaskKey = isResumable ? () => 0 : nextMaskKey;
    this.#socket = socket;
    this.#head = head;
    this.#handler = handler;
    this.#times = times;
    this.#lastPingMs = this.#lastHeardMs = times.clock.now();
    this.#decoder = new WebSocketFrameDecoder("client", {
      onMessage: (part, isFirst, isLast, isText) => {
        if (!this.#isOver) handler.onMessage(part, isFirst, isLast, isText);
      },
      onPing: (payload) => this.#answerPing(payload),
      onPong: () => {
        this.#hasUnansweredInput = false;
      },
      onClose: (code, reason) => this.#closedByPeer(code, reason),
    });
  }

  /**
   * Starts reading; nothing is delivered earlier. `reusesReads`: no consumer keeps a view of a
   * message's part.
   */
  start(reusesReads = false): void {
    const socket = this.#socket;
    socket.on("data", (chunk: Buffer) => {
      this.#receive(chunk);
      if (reusesReads) releaseChunk(socket);
    });
    socket.on("drain", () => this.#drained());
    socket.on("end", () =>
      this.#broken("connection-lost", "the server ended the connection without a Close frame"),
    );
    socket.on("error", (error: Error) => this.#broken("connection-lost", error.message));
    socket.on("close", () => this.#broken("connection-lost", "the connection closed"));
    this.#times.clock.add(this);
    // Resumes before it reads the head, whose messages may pause the socket.
    socket.resume();
    if (this.#head.byteLength > 0) this.#receive(this.#head);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get needsDrain(): boolean {
    return !this.#isOver && this.#socket.writableNeedDrain;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /**
   * Sends binary messages in one write. Each is one frame of at most MAX_FRAME_BYTES: `prefix` (a
   * channel byte, absent in tunnels) and a part of `payload`, which is copied.
   */
  sendMessages(prefix: number | undefined, payload: Uint8Array): void {
    if (this.#isOver || !this.#socket.writable) return;
    const partBytes = MAX_FRAME_BYTES - FRAME_HEADER_BYTES - (prefix === undefined ? 0 : 1);
    const frames = Math.ceil(payload.byteLength / partBytes);
    const memory = takeFrameMemory(payload.byteLength + frames * (MAX_FRAME_BYTES - partBytes));
    let end = 0;
    for (let at = 0; at < payload.byteLength; at += partBytes) {
      end = writeMessage(memory, end, prefix, payload.subarray(at, at + partBytes), this.#nextMaskKey());
    }
    this.#hasUnansweredInput = true;
    this.#socket.write(memory.subarray(0, end), (error) => {
      if (!error) releaseFrameMemory(memory);
    });
  }

  tick(nowMs: number): void {
    if (this.#isOver) return;
    if (this.#socket.isPaused() || this.#hasUnansweredInput) this.#lastHeardMs = nowMs;
    if (nowMs - this.#lastHeardMs >= this.#deadlineMs) {
      this.#broken("heartbeat-timeout", "the server did not answer for too long: i/o timeout");
      return;
    }
    if (nowMs - this.#lastPingMs < this.#times.pingIntervalMs || this.#socket.writableNeedDrain) return;
    this.#lastPingMs = nowMs;
    this.#sendControl(OPCODE.PING, NOTHING);
  }

  /** Sends Close after all earlier data. */
  close(code: number = CLOSE.NORMAL): void {
    if (this.#isOver) return;
    this.#end();
    this.#sendCloseAndEnd(code, "");
  }

  abort(): void {
    this.#end();
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#lastHeardMs = this.#times.clock.now();
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#end();
      this.#sendCloseAndEnd(closeCodeOf(error), error.message);
      this.#handler.onEnd({
        isClean: false,
        code: CLOSE.ABNORMAL,
        reason: error.message,
        cause: "protocol-error",
      });
    }
  }

  #drained(): void {
    const payload = this.#owedPong;
    this.#owedPong = undefined;
    if (payload !== undefined) this.#sendControl(OPCODE.PONG, payload);
    if (!this.#isOver) this.#handler.onDrain();
  }

  /** While the peer does not read, only its newest PING is remembered (RFC 6455 section 5.5.3). */
  #answerPing(payload: Uint8Array): void {
    if (this.#socket.writableNeedDrain) this.#owedPong = new Uint8Array(payload);
    else this.#sendControl(OPCODE.PONG, payload);
  }

  #sendControl(opcode: number, payload: Uint8Array): void {
    if (this.#isOver || !this.#socket.writable) return;
    this.#socket.write(encodeControlFrame(opcode, payload, this.#nextMaskKey()));
  }

  #closedByPeer(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#end();
    this.#sendCloseAndEnd(code === NO_CLOSE_CODE ? CLOSE.NORMAL : code, "");
    this.#handler.onEnd({ isClean: true, code, reason });
  }

  #broken(cause: SessionErrorCode, reason: string): void {
    if (this.#isOver) return;
    this.#end();
    this.#socket.destroy();
    this.#handler.onEnd({ isClean: false, code: CLOSE.ABNORMAL, reason, cause });
  }

  #end(): void {
    this.#isOver = true;
    this.#times.clock.delete(this);
  }

  #sendCloseAndEnd(code: number, reason: string): void {
    const socket = this.#socket;
    if (socket.writable) socket.end(encodeClose(code, reason, this.#nextMaskKey()));
    const timer = setTimeout(() => socket.destroy(), MAX_CLOSE_MS).unref();
    socket.removeAllListeners("data").on("data", () => {});
    socket.once("end", () => socket.destroy());
    socket.once("close", () => clearTimeout(timer));
    socket.unref().resume();
  }
}

/** Returns the offset after the frame. */
function writeMessage(
  memory: Uint8Array,
  offset: number,
  prefix: number | undefined,
  part: Uint8Array,
  maskKey: number,
): number {
  const prefixBytes = prefix === undefined ? 0 : 1;
  const bytes = part.byteLength + prefixBytes;
  const start = offset + writeMaskedFrameHeader(memory, offset, OPCODE.BINARY, bytes, true, maskKey);
  if (prefix !== undefined) memory[start] = prefix;
  memory.set(part, start + prefixBytes);
  const end = start + bytes;
  applyMask(memory.subarray(start, end), maskKey, 0);
  return end;
}
