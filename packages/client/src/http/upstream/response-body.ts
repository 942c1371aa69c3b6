import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { UpstreamError } from "../../net/upstream-error.ts";
import type { SingleResponse } from "./single-response.ts";

/**
 * How long a refusal's body may take to arrive, so that its readers need no timer. Past it, it is cut
 * off.
 */
const REFUSAL_BODY_DEADLINE_MS = 10_000;

interface ResponseBodyOptions {
  readonly deadlineMs?: number | undefined;
  /**
   * Gets the paused socket once the body is complete and the connection is reusable. Absent: the socket
   * is closed.
   */
  readonly release?: ((socket: Socket) => void) | undefined;
}

/**
 * The decoded body of an answer whose head has been read. It owns the upstream socket and closes it at
 * the end or when destroyed, since a connection that refused an upgrade is never reused
 * (CVE-2018-1002105). A body that is truncated, or not complete within `deadlineMs`, fails with
 * UpstreamError "truncated-body" and never ends cleanly.
 */
export class ResponseBody extends Readable {
  readonly #socket: Socket;
  readonly #deadline: NodeJS.Timeout;
  #isReleased = false;

  constructor(
    socket: Socket,
    response: SingleResponse,
    { deadlineMs = REFUSAL_BODY_DEADLINE_MS, release }: ResponseBodyOptions = {},
  ) {
    super({ highWaterMark: 64 * 1024 });
    this.#socket = socket;
    this.#deadline = setTimeout(() => this.destroy(truncated("i/o timeout")), deadlineMs);
    // A reader, if there is one, gets the failure from its reads.
    this.on("error", () => {});
    let isOver = false;

    const finish = (): void => {
      isOver = true;
      clearTimeout(this.#deadline);
      this.push(null);
      if (release === undefined || !response.keepsAlive) {
        socket.destroy();
        return;
      }
      this.#isReleased = true;
      socket.off("data", take).off("end", end).off("close", end);
      socket.pause();
      release(socket);
    };
    const read = (more: () => void): void => {
      if (isOver) return;
      try {
        more();
      } catch (error) {
        this.destroy(error as Error);
        return;
      }
      if (response.isWhole) finish();
    };
    const take = (chunk: Buffer): void => read(() => void response.push(chunk));
    const end = (): void => {
      if (isOver) return;
      if (!socket.errored && response.end()) finish();
      else this.destroy(truncated("unexpected EOF"));
    };
    read(() =>
      response.readBody((part) => {
        if (!this.push(part)) socket.pause();
      }),
    );
    if (!isOver && !this.destroyed) socket.on("data", take).on("end", end).on("close", end);
  }

  override _read(): void {
    if (!this.#isReleased) this.#socket.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#deadline);
    if (!this.#isReleased) this.#socket.destroy();
    callback(error);
  }
}

function truncated(text: string): UpstreamError {
  return new UpstreamError("truncated-body", text);
}
