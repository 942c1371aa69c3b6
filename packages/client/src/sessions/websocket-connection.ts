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
  type WebSocketLimits,
  type WebSocketRole,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";
import { clientFailureOf, destroySocket } from "../net/abort-socket.ts";
import { headerSlab, nextMaskKey } from "../net/frame-memory.ts";
import { finishAndLinger, type LingerTimes } from "../net/linger.ts";
import type { SessionClock } from "../net/session-clock.ts";
import { NodeSilence } from "./node-silence.ts";
import { endOf, faultOf, type SessionEnd } from "./session-end.ts";

/**
 * How a WebSocket ended. `isClean`: the peer sent Close; otherwise the connection broke, or the peer's
 * frames were malformed.
 */
export interface WebSocketEnd {
  readonly isClean: boolean;
  readonly isProtocolError: boolean;
  readonly code: number;
  readonly reason: string;
}

/** The session's end if its client's WebSocket ended this way. */
export function clientEnd({ isClean, isProtocolError, code, reason }: WebSocketEnd): SessionEnd {
  if (isProtocolError)
    return faultOf("client", "protocol-error", `the client sent malformed WebSocket: ${reason}`);
  return endOf("client-gone", isClean ? `the client closed with ${code}` : reason);
}

interface WebSocketConnectionHandler {
  onMessage(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void;
  /** Called once when the peer ends or breaks the connection. Never called after `close`. */
  onEnd(end: WebSocketEnd): void;
}

interface WebSocketConnectionOptions {
  /** This side's role. A client masks its frames. */
  readonly role: WebSocketRole;
  readonly limits: WebSocketLimits;
  readonly lingerTimes: LingerTimes;
  readonly clock: SessionClock;
  /** PING a peer that was not pinged for this long, in milliseconds. Stops load balancers' idle timers. */
  readonly pingIntervalMs: number;
  /**
   * Interval of unsolicited PONGs, in milliseconds. Only PONGs extend client-go's read deadline of 61 s,
   * so without them it would end a session that backpressure holds up.
   */
  readonly pongIntervalMs: number;
}

/** The parts of a session that set its WebSockets' times. */
interface WebSocketTimes {
  readonly clock: SessionClock;
  readonly timeouts: LingerTimes & { readonly webSocketPingMs: number; readonly unsolicitedPongMs: number };
}

/** The options of a session's WebSocket, in which this process has the `role`. Only clients get unsolicited PONGs. */
export function webSocketOptions(
  role: WebSocketRole,
  limits: WebSocketLimits,
  { clock, timeouts }: WebSocketTimes,
): WebSocketConnectionOptions {
  return {
    role,
    limits,
    lingerTimes: timeouts,
    clock,
    pingIntervalMs: timeouts.webSocketPingMs,
    pongIntervalMs: role === "server" ? timeouts.unsolicitedPongMs : Number.POSITIVE_INFINITY,
  };
}

/**
 * One end of a WebSocket (RFC 6455). Passes messages on in parts. Senders check `writableNeedDrain`;
 * while the peer does not read, only its newest PING is remembered (section 5.5.3).
 */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #handler: WebSocketConnectionHandler;
  readonly #options: WebSocketConnectionOptions;
  readonly #decoder: WebSocketFrameDecoder;
  readonly #silence: NodeSilence;
  #owedPong: Uint8Array | undefined;
  #lastPingMs: number;
  #lastPongMs: number;
  #hasSentClose = false;
  #isOver = false;

  constructor(socket: Duplex, handler: WebSocketConnectionHandler, options: WebSocketConnectionOptions) {
    this.#socket = socket;
    this.#handler = handler;
    this.#options = options;
    this.#lastPingMs = this.#lastPongMs = options.clock.now();
    this.#silence = new NodeSilence(this.#lastPingMs);
    this.#decoder = new WebSocketFrameDecoder(
      options.role,
      {
        onMessage: (part, isFirst, isLast, isText) => {
          if (!this.#isOver) handler.onMessage(part, isFirst, isLast, isText);
        },
        onPing: (payload) => this.#answerPing(payload),
        onPong: () => {},
        onClose: (code, reason) => this.#closedByPeer(code, reason),
      },
      options.limits,
    );
    if (options.role === "server") socket.on("drain", () => this.#flushPong());
    const peer = options.role === "server" ? "client" : "node";
    socket.on("end", () => this.#broken(`the ${peer} ended the connection without a Close frame`));
    socket.on("error", (error: Error) => this.#broken(clientFailureOf(error)));
    socket.on("close", () => this.#broken("the connection closed"));
  }

  get socket(): Duplex {
    return this.#socket;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** True if a message of the peer has begun and more of it is to come. */
  get isInMessage(): boolean {
    return this.#decoder.isInMessage;
  }

  /** True once the kernel has taken our Close and everything before it. */
  get hasSentClose(): boolean {
    return this.#hasSentClose;
  }

  /** Decodes a chunk from the socket and unmasks it in place. A protocol error ends the connection. */
  receive(chunk: Uint8Array): void {
    if (this.#isOver) return;
    this.#silence.heard();
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const code = closeCodeOf(error);
      this.#end({ isClean: false, isProtocolError: true, code, reason: error.message });
      this.#sendCloseAndLinger(code, error.message);
    }
  }

  /**
   * Sends one message as a single frame: `prefix` (a channel byte, absent in tunnels), then `payload`. A
   * client masks the payload in place, so the caller must not use it again.
   */
  sendMessage(prefix: number | undefined, payload: Uint8Array, opcode: number = OPCODE.BINARY): void {
    if (this.#isOver || !this.#socket.writable) return;
    const prefixBytes = prefix === undefined ? 0 : 1;
    const header = headerSlab.take(MAX_FRAME_HEADER_BYTES + 1);
    const length = payload.byteLength + prefixBytes;
    let headerBytes: number;
    if (this.#options.role === "server") {
      headerBytes = writeFrameHeader(header, 0, opcode, length, true);
      if (prefix !== undefined) header[headerBytes++] = prefix;
    } else {
      const maskKey = nextMaskKey();
      headerBytes = writeMaskedFrameHeader(header, 0, opcode, length, true, maskKey);
      if (prefix !== undefined) header[headerBytes++] = prefix ^ (maskKey >>> 24);
      applyMask(payload, maskKey, prefixBytes);
    }
    this.#socket.write(header.subarray(0, headerBytes));
    if (payload.byteLength > 0) this.#socket.write(payload);
  }

  /**
   * Sends heartbeats; call about once a second. A node gets heartbeats and answers only while it is
   * silent (NodeSilence).
   */
  tick(nowMs: number): void {
    if (this.#isOver) return;
    const isQuiet = this.#silence.isQuiet(nowMs, this.#socket.isPaused());
    if (this.#socket.writableNeedDrain || (this.#options.role === "client" && !isQuiet)) return;
    this.#flushPong();
    if (nowMs - this.#lastPingMs >= this.#options.pingIntervalMs) {
      this.#lastPingMs = nowMs;
      this.#sendControl(OPCODE.PING, NOTHING);
    }
    if (nowMs - this.#lastPongMs >= this.#options.pongIntervalMs) this.#sendPong(NOTHING);
  }

  /** Sends Close after everything else, then lets the peer read all of it (see linger.ts). */
  close(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#sendCloseAndLinger(code, reason);
  }

  /** Breaks the connection without Close, so that the peer does not take its data for complete. */
  abort(): void {
    this.#isOver = true;
    destroySocket(this.#socket);
  }

  #answerPing(payload: Uint8Array): void {
    if (this.#isOver) return;
    const mustWait = this.#options.role === "client" || this.#socket.writableNeedDrain;
    if (mustWait) this.#owedPong = new Uint8Array(payload);
    else this.#sendPong(payload);
  }

  #flushPong(): void {
    const payload = this.#owedPong;
    this.#owedPong = undefined;
    if (payload !== undefined && !this.#isOver) this.#sendPong(payload);
  }

  #sendPong(payload: Uint8Array): void {
    this.#lastPongMs = this.#options.clock.now();
    this.#sendControl(OPCODE.PONG, payload);
  }

  #sendControl(opcode: number, payload: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(encodeControlFrame(opcode, payload, this.#maskKey()));
  }

  #maskKey(): number | undefined {
    return this.#options.role === "client" ? nextMaskKey() : undefined;
  }

  #closedByPeer(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#end({ isClean: true, isProtocolError: false, code, reason });
    this.#sendCloseAndLinger(code === NO_CLOSE_CODE ? 1000 : code, "");
  }

  #broken(reason: string): void {
    if (this.#isOver) return;
    this.#end({ isClean: false, isProtocolError: false, code: CLOSE.ABNORMAL, reason });
    destroySocket(this.#socket);
  }

  #end(end: WebSocketEnd): void {
    this.#isOver = true;
    this.#handler.onEnd(end);
  }

  #sendCloseAndLinger(code: number, reason: string): void {
    if (this.#socket.writable) {
      this.#socket.write(encodeClose(code, reason, this.#maskKey()), (error) => {
        this.#hasSentClose = !error;
      });
    }
    const { lingerTimes, clock, role } = this.#options;
    finishAndLinger(this.#socket, lingerTimes, clock, role === "client" ? "node" : "client");
  }
}
