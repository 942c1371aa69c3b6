import type { Duplex } from "node:stream";
import type { UpgradedConnection } from "../net/upgraded-connection.ts";

/** Largest burst a client may send before it is answered; more waits in the kernel. */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * A client whose upgrade has not been answered. Notices when it leaves, so that no node is dialled for
 * it, and keeps the few bytes that it may send early.
 */
export class PendingClient {
  readonly socket: Duplex;
  readonly #abort = new AbortController();
  readonly #early: Uint8Array[] = [];
  #earlyBytes = 0;

  /** `head` is what the HTTP parser had read beyond the request. */
  constructor(socket: Duplex, head: Uint8Array) {
    this.socket = socket;
    // A client that half-closes may still be owed its output. HTTPS servers do not allow it by themselves.
    socket.allowHalfOpen = true;
    if (head.byteLength > 0) this.#keep(head);
    socket.on("data", this.#keep);
    socket.on("end", this.#gone);
    socket.on("close", this.#gone);
    // Without a listener an ECONNRESET would end the process; `close` follows and says the same.
    socket.on("error", ignore);
  }

  /** Aborted when the client went away. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Hands the socket over, paused, with what it sent early. */
  release(): UpgradedConnection {
    this.socket.off("data", this.#keep);
    this.socket.off("end", this.#gone);
    this.socket.off("close", this.#gone);
    this.socket.pause();
    return { socket: this.socket, head: Buffer.concat(this.#early, this.#earlyBytes) };
  }

  readonly #keep = (chunk: Uint8Array): void => {
    this.#early.push(chunk);
    this.#earlyBytes += chunk.byteLength;
    if (this.#earlyBytes >= MAX_EARLY_BYTES) this.socket.pause();
  };

  readonly #gone = (): void => {
    this.#abort.abort();
  };
}

function ignore(): void {}
