import type { Socket } from "node:net";
import { ProtocolError } from "@sluice/protocols";
import {
  type FieldLines,
  ResponseDecoder,
  type ResponseDelivery,
  type ResponseHandler,
  type ResponseHead,
} from "@sluice/protocols/http1";
import { releaseChunk } from "../../net/reused-reads.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import { contain, containEvents } from "../../observability/faults.ts";
import { latin1Of } from "../header-list.ts";
import { responseErrorOf } from "./exchange-error.ts";

/** A connection's present exchange. */
export interface Http1Exchange extends Pick<ResponseHandler<Buffer>, "onInterim" | "onHead"> {
  /**
   * What one read brought behind the head: parts of the body, and the trailers if the response is
   * complete. Returns true if it was sent or copied, so that its memory is free.
   */
  onRead(parts: readonly Buffer[], trailers: FieldLines | undefined): boolean;
  /** The connection can take more writes. */
  onDrain(): void;
  /** The timeout of `expectHeadWithin` has passed. */
  onTimeout(): void;
  /** A callback of the connection threw. */
  onFault(error: unknown): void;
  /** The connection broke before the response was complete, and is unusable. `parts`: of the last read. */
  onBroken(error: Error, parts: readonly Buffer[]): void;
}

/** Keeps idle connections. */
export interface IdlePool {
  /** Called when the connection can carry another exchange. */
  keep(connection: Http1UpstreamConnection): void;
  /** Called when the connection is closing or closed. */
  forget(connection: Http1UpstreamConnection): void;
}

/** Node's own servers close a connection one second earlier than they promise. */
const KEEP_ALIVE_MARGIN_MS = 1_000;

/**
 * One HTTP/1.1 connection to an upstream, one exchange at a time. Node's client costs more than all
 * other forwarding work; here a head is one write, and a body is the slices that were read.
 */
export class Http1UpstreamConnection implements ResponseHandler<Buffer> {
  readonly #socket: Socket;
  readonly #keeper: IdlePool;
  readonly #decoder: ResponseDecoder<Buffer>;
  /** When the pool closes the idle connection, by `performance.now()`. */
  expiresAtMs = 0;
  /** The number of exchanges begun on this connection. */
  exchanges = 0;
  /** How long the upstream promised to keep the connection while idle, in milliseconds. */
  promisedMs: number | undefined;
  /** True once some of the present response has arrived. */
  hasHeard = false;
  #exchange: Http1Exchange | undefined;
  #error: Error | undefined;
  /** What the present read has brought. */
  #parts: Buffer[] = [];
  #trailers: FieldLines | undefined;
  #isReusable = false;
  #awaitsHead = false;
  #timer: NodeJS.Timeout | undefined;
  #timerMs = 0;
  #isTimerArmed = false;
  #expectsBytes = false;

  /** The socket must be as from `dial`. */
  constructor(socket: Socket, keeper: IdlePool) {
    this.#socket = socket;
    this.#keeper = keeper;
    this.#decoder = new ResponseDecoder<Buffer>(this, { textOf: latin1Of });
    containEvents(socket, "exchange", (error) => this.#fault(error));
    socket.on("data", this.#read);
    socket.on("end", () => this.#ended());
    socket.on("drain", () => this.#exchange?.onDrain());
    socket.on("error", (error) => {
      this.#error = error;
    });
    socket.on("close", () => this.#closed());
    // A proxy's answer leaves the socket paused.
    socket.resume();
  }

  begin(exchange: Http1Exchange, method: string): void {
    this.#exchange = exchange;
    this.exchanges += 1;
    this.hasHeard = false;
    this.#awaitsHead = true;
    this.#isReusable = false;
    this.#decoder.expect(method);
  }

  /** Returns false if the caller should wait for `onDrain`. */
  write(data: string | Uint8Array): boolean {
    const socket = this.#socket;
    const hasRoom = typeof data === "string" ? socket.write(data, "latin1") : socket.write(data);
    // Usually the kernel has taken everything by now, whatever its size.
    return hasRoom || socket.writableLength === 0;
  }

  cork(): void {
    this.#socket.cork();
  }

  /** Returns the same as `write`. */
  uncork(): boolean {
    const socket = this.#socket;
    socket.uncork();
    return !socket.writableNeedDrain || socket.writableLength === 0;
  }

  /** Whether the kernel has not taken everything written yet. */
  get hasQueue(): boolean {
    return this.#socket.writableLength > 0;
  }

  /** Calls `listener` once the kernel has taken what was written before, or the connection has failed. */
  onceTaken(listener: () => void): void {
    this.#socket.write("", listener);
  }

  /** Stops reading, which slows the upstream down. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /**
   * When the kernel has taken everything written, the response's head must arrive within `timeoutMs`.
   * One timer serves all exchanges, since most are in time.
   */
  expectHeadWithin(timeoutMs: number): void {
    if (this.#socket.writableLength > 0) {
      const exchange = this.#exchange;
      this.#socket.write("", (error) => {
        if (!error && this.#exchange === exchange && this.#awaitsHead) this.expectHeadWithin(timeoutMs);
      });
      return;
    }
    this.#isTimerArmed = true;
    if (this.#timer !== undefined && this.#timerMs === timeoutMs) {
      this.#timer.refresh();
      return;
    }
    clearTimeout(this.#timer);
    this.#timerMs = timeoutMs;
    this.#timer = setTimeout(() => {
      if (!this.#isTimerArmed) return;
      contain(
        "exchange",
        () => this.#exchange?.onTimeout(),
        (error) => this.#fault(error),
      );
    }, timeoutMs).unref();
  }

  /**
   * From now until `finish`, breaks the connection if it receives nothing for `timeoutMs`, unless it is
   * paused.
   */
  expectBytesWithin(timeoutMs: number): void {
    if (!this.#expectsBytes) this.#socket.on("timeout", this.#silent);
    this.#expectsBytes = true;
    this.#socket.setTimeout(timeoutMs);
  }

  readonly #silent = (): void => {
    // The client is slow, which has its own timeout.
    if (!this.#socket.isPaused()) this.#break(new UpstreamError("response-timeout", "the response stopped"));
    else this.#socket.setTimeout(this.#socket.timeout ?? 0);
  };

  /**
   * The exchange is done. Keeps the connection if request and response are complete and both sides allow
   * it.
   */
  finish(): void {
    this.#exchange = undefined;
    this.#isTimerArmed = false;
    const socket = this.#socket;
    if (this.#expectsBytes) {
      this.#expectsBytes = false;
      socket.off("timeout", this.#silent).setTimeout(0);
    }
    const isClean = this.#isReusable && this.#decoder.isIdle && socket.writableLength === 0;
    if (!isClean || socket.destroyed || socket.readableEnded) {
      socket.destroy();
      return;
    }
    if (socket.isPaused()) socket.resume();
    this.#keeper.keep(this);
  }

  /** Closes without notifying the exchange. */
  destroy(): void {
    this.#exchange = undefined;
    // Before 'close', so that the pool does not hand it out meanwhile.
    this.#keeper.forget(this);
    this.#socket.destroy();
  }

  onInterim(head: ResponseHead): void {
    this.#exchange?.onInterim(head);
  }

  onHead(head: ResponseHead, delivery: ResponseDelivery): void {
    this.#awaitsHead = false;
    this.#isTimerArmed = false;
    this.#isReusable = delivery.keepsAlive;
    if (delivery.keepsAlive) this.promisedMs = promiseOf(head.headers);
    this.#exchange?.onHead(head, delivery);
  }

  onBody(part: Buffer): void {
    this.#parts.push(part);
  }

  onEnd(trailers: FieldLines): void {
    this.#trailers = trailers;
  }

  readonly #read = (chunk: Buffer): void => {
    const exchange = this.#exchange;
    // Bytes arrived without a request.
    if (exchange === undefined) {
      this.destroy();
      return;
    }
    this.hasHeard = true;
    try {
      if (this.#decoder.push(chunk) < chunk.length) this.#isReusable = false;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#break(responseErrorOf(error));
      return;
    }
    const parts = this.#parts;
    const trailers = this.#trailers;
    this.#parts = [];
    this.#trailers = undefined;
    if (exchange.onRead(parts, trailers)) releaseChunk(this.#socket);
  };

  #ended(): void {
    const exchange = this.#exchange;
    this.#isReusable = false;
    if (exchange !== undefined && this.#decoder.end()) exchange.onRead([], []);
    // Missing bytes will not come now.
    this.#break(new UpstreamError("closed-before-response", "EOF"));
  }

  #closed(): void {
    clearTimeout(this.#timer);
    this.#break(this.#error ?? new UpstreamError("closed-before-response", "EOF"));
  }

  #fault(error: unknown): void {
    const exchange = this.#exchange;
    this.destroy();
    exchange?.onFault(error);
  }

  #break(error: Error): void {
    const exchange = this.#exchange;
    this.destroy();
    exchange?.onBroken(error, this.#parts);
  }
}

/** The milliseconds in `Keep-Alive: timeout=5`, which many servers send. */
function promiseOf(headers: FieldLines): number | undefined {
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string;
    if (name.length !== 10 || name.toLowerCase() !== "keep-alive") continue;
    const seconds = /(?:^|[,;\s])timeout=(\d{1,6})/i.exec(headers[at + 1] as string)?.[1];
    if (seconds !== undefined) return Math.max(0, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS);
  }
  return undefined;
}
