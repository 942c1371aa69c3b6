import type { Duplex } from "node:stream";
import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { answerSwitched, switchedStatusOf } from "../http/upgrade/answer-switched.ts";
import { copyRefusal } from "../http/upgrade/copy-refusal.ts";
import { withReusedReads } from "../net/accepted-socket.ts";
import type { BeginSession, Downstream, SwitchAnswer } from "./incoming-request.ts";

/** Bytes that a client sends before its upgrade is answered. Past it they wait in the kernel. */
const MAX_EARLY_BYTES = 64 * 1024;

/**
 * A client that waits for the answer to its upgrade. Notices when the client leaves, so that no node
 * is dialled for it, and buffers bytes that it sends early.
 */
export class PendingClient implements Downstream {
  readonly socket: Duplex;
  readonly #abort = new AbortController();
  readonly #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #status: number | undefined;

  /** `head`: bytes that the HTTP parser read beyond the request. */
  constructor(socket: Duplex, head: Uint8Array) {
    this.socket = socket;
    // A client that half-closes may still get output. HTTPS servers do not set this themselves.
    socket.allowHalfOpen = true;
    if (head.byteLength > 0) this.#keep(head);
    socket.on("data", this.#keep);
    socket.on("end", this.#gone);
    socket.on("close", this.#gone);
    // Without a listener an ECONNRESET would end the process; `close` follows anyway.
    socket.on("error", ignore);
  }

  /** Aborted when the client leaves. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The upstream's answer that was sent; undefined before it. */
  get status(): number | undefined {
    return this.#status;
  }

  accept({ headers, statusMessage }: SwitchAnswer, begin: BeginSession): void {
    const connection = withReusedReads(this.release());
    const { socket } = connection;
    const status = switchedStatusOf(socket);
    this.#status = status;
    socket.cork();
    try {
      answerSwitched(socket, headers, statusMessage);
      begin(connection, status);
    } finally {
      socket.uncork();
    }
  }

  async refuse(answer: RefusedUpgrade): Promise<void> {
    this.#status = answer.status;
    await copyRefusal(answer, this.release().socket);
  }

  /** Returns the socket, paused, and the bytes that arrived early. */
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
