import { connect, type Socket } from "node:net";
import { type FakeNodeLimits, sendInChunks } from "./limits.ts";

/** The client's side of one forwarded connection: a pair of SPDY streams or of WebSocket channels. */
interface ForwardClient {
  sendData(part: Uint8Array): void;
  /** The target has ended its side, and thereby the connection. */
  finishData(): void;
  resetData(): void;
  /**
   * Text that the user must see. kubectl then ends all forwarding, so send it only for connections
   * that never existed.
   */
  sendError(text: string): void;
  finishError(): void;
  /**
   * Stops reading the client's data: containerd's copy has ended, and Go's SPDY leaves the data
   * unread.
   */
  endReading(): void;
  /** The client's connection accepts no more until `resumeReading`. */
  readonly isFull: boolean;
  /** True: the target accepts no more, so do not read the connection. False: read it again. */
  setBlocked(isBlocked: boolean): void;
  /** Called once, when nothing of this connection is left. */
  onOver(): void;
}

export interface ForwardTarget {
  /** The port inside the pod. */
  readonly port: number;
  /** The loopback port; undefined if nothing listens on `port`. */
  readonly realPort: number | undefined;
  /** Names the pod in a refusal's text. */
  readonly sandboxId: string;
}

// Only an accepted piece shows that the target still reads, so pieces are small.
const PIECE_BYTES = 16 * 1024;

/**
 * One connection to a port of the pod. Buffers data that the target does not read, up to
 * `maxForwardBufferBytes`.
 */
export class ForwardedConnection {
  readonly #client: ForwardClient;
  readonly #limits: FakeNodeLimits;
  readonly #now: () => number;
  readonly #socket: Socket | undefined;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #isWriting = false;
  #isBlocked = false;
  #lastTakenMs: number;
  #hasConnected = false;
  #hasClientFinished = false;
  #hasTargetFinished = false;
  #closesAtMs = Number.POSITIVE_INFINITY;
  #isOver = false;

  constructor(client: ForwardClient, target: ForwardTarget, limits: FakeNodeLimits, now: () => number) {
    this.#client = client;
    this.#limits = limits;
    this.#now = now;
    this.#lastTakenMs = now();
    if (target.realPort === undefined) {
      queueMicrotask(() => this.#refuse(target, "connection refused"));
      return;
    }
    const socket = connect({ host: "127.0.0.1", port: target.realPort, allowHalfOpen: true });
    this.#socket = socket;
    socket.once("connect", () => {
      this.#hasConnected = true;
      this.#lastTakenMs = now();
      this.#pump();
    });
    socket.on("data", (part: Uint8Array) => this.#received(part));
    socket.once("end", () => this.#targetFinished());
    socket.once("error", (error: NodeJS.ErrnoException) => {
      // A reset may arrive before the event of the connection that it ends.
      if (error.syscall === "connect")
        this.#refuse(target, error.code === "ECONNREFUSED" ? "connection refused" : error.message);
      else this.#fail(target, error);
    });
    socket.once("close", () => this.abort());
  }

  /** Sends the client's data. The part is kept until the target accepts it. */
  write(part: Uint8Array): void {
    if (this.#isOver || this.#hasClientFinished || part.length === 0) return;
    if (this.#queue.length === 0) this.#lastTakenMs = this.#now();
    this.#queue.push(part);
    this.#queuedBytes += part.length;
    this.#pump();
    this.#updateBlocked();
  }

  /** The client will send no more; the target may. */
  finish(): void {
    if (this.#isOver || this.#hasClientFinished) return;
    this.#hasClientFinished = true;
    this.#pump();
  }

  /** Ends both directions now; the client gets a reset, without text. */
  abort(): void {
    if (this.#isOver) return;
    this.#client.resetData();
    this.#client.finishError();
    this.#over();
  }

  resumeReading(): void {
    this.#socket?.resume();
  }

  tick(nowMs: number): void {
    const isStalled = nowMs - this.#lastTakenMs >= this.#limits.streamStallTimeoutMs;
    if (this.#isBlocked && isStalled) this.abort();
    if (nowMs >= this.#closesAtMs) this.#close();
  }

  #pump(): void {
    const socket = this.#socket;
    if (socket === undefined || !this.#hasConnected || this.#isWriting || !socket.writable) return;
    const first = this.#queue[0];
    if (first === undefined) {
      if (this.#hasClientFinished) socket.end(() => this.#endIfBothFinished());
      return;
    }
    const piece = first.subarray(0, PIECE_BYTES);
    if (piece.length === first.length) this.#queue.shift();
    else this.#queue[0] = first.subarray(PIECE_BYTES);
    this.#isWriting = true;
    socket.write(piece, (error) => {
      this.#isWriting = false;
      this.#queuedBytes -= piece.length;
      if (error) return;
      this.#lastTakenMs = this.#now();
      this.#pump();
      this.#updateBlocked();
    });
  }

  #updateBlocked(): void {
    const isBlocked = !this.#isOver && this.#queuedBytes > this.#limits.maxForwardBufferBytes;
    if (isBlocked === this.#isBlocked) return;
    this.#isBlocked = isBlocked;
    this.#client.setBlocked(isBlocked);
  }

  #received(part: Uint8Array): void {
    if (this.#isOver) return;
    sendInChunks(part, (chunk) => this.#client.sendData(chunk));
    if (this.#client.isFull) this.#socket?.pause();
  }

  #targetFinished(): void {
    if (this.#isOver) return;
    this.#hasTargetFinished = true;
    if (this.#limits.forwardGraceMs === Number.POSITIVE_INFINITY) this.#client.finishData();
    this.#closesAtMs = this.#now() + this.#limits.forwardGraceMs;
    this.#endIfBothFinished();
  }

  #endIfBothFinished(): void {
    if (!this.#isOver && this.#hasTargetFinished && this.#socket?.writableFinished === true) this.#close();
  }

  /**
   * As in containerd, once the target has ended, the client's data is no longer read, finished or
   * not.
   */
  #close(): void {
    if (this.#isOver) return;
    this.#client.finishError();
    this.#client.finishData();
    if (!this.#hasClientFinished) this.#client.endReading();
    this.#over();
  }

  #refuse(target: ForwardTarget, reason: string): void {
    const { port, sandboxId } = target;
    this.#sayAndEnd(
      target,
      `failed to connect to localhost:${port} inside namespace "${sandboxId}", IPv4: dial tcp4 127.0.0.1:${port}: connect: ${reason}`,
    );
  }

  /**
   * The target accepted and then reset: containerd's copy fails, and kubectl ends all forwarding at
   * that error.
   */
  #fail(target: ForwardTarget, { code = "", syscall = "read" }: NodeJS.ErrnoException): void {
    const { port, sandboxId } = target;
    const reason = code === "EPIPE" ? "broken pipe" : "connection reset by peer";
    const from = `127.0.0.1:${this.#socket?.localPort ?? 0}`;
    this.#sayAndEnd(
      target,
      `failed to execute portforward in network namespace "${sandboxId}": ${syscall} tcp4 ${from}->127.0.0.1:${port}: ${syscall}: ${reason}`,
    );
  }

  /** The text has containerd's words. */
  #sayAndEnd({ port, sandboxId }: ForwardTarget, cause: string): void {
    if (this.#isOver) return;
    this.#client.sendError(`error forwarding port ${port} to pod ${sandboxId}, uid : ${cause}`);
    this.#client.finishError();
    this.#client.resetData();
    this.#over();
  }

  #over(): void {
    this.#isOver = true;
    this.#queue = [];
    this.#updateBlocked();
    this.#socket?.destroy();
    this.#client.onOver();
  }
}
