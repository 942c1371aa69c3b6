import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { UpstreamError } from "../net/upstream-error.ts";
import { type BodyFraming, createBodyDecoder } from "./response-body.ts";

/** A refusal's body has this long to arrive; whoever reads it need not keep a clock of its own. */
export const REFUSAL_BODY_DEADLINE_MS = 10_000;

/**
 * The decoded body of a refused upgrade. It owns the upstream socket: at its end, or when it is destroyed, the socket
 * is closed, because a connection that refused an upgrade is never used again (CVE-2018-1002105). A body that is cut
 * short, or is not through within `deadlineMs`, ends in an UpstreamError "truncated-body", never in a clean end.
 */
export class RefusalBody extends Readable {
  readonly #socket: Socket;
  readonly #deadline: NodeJS.Timeout;

  constructor(socket: Socket, first: Buffer, framing: BodyFraming, deadlineMs = REFUSAL_BODY_DEADLINE_MS) {
    super({ highWaterMark: 64 * 1024 });
    this.#socket = socket;
    this.#deadline = setTimeout(() => this.destroy(truncated("i/o timeout")), deadlineMs);
    // Whoever reads it learns of a failure; nobody has to read it.
    this.on("error", () => {});
    const decoder = createBodyDecoder(framing);
    let isOver = false;

    const finish = (): void => {
      isOver = true;
      clearTimeout(this.#deadline);
      this.push(null);
      socket.destroy();
    };
    const take = (chunk: Buffer): void => {
      if (isOver) return;
      try {
        decoder.push(chunk, (part) => {
          if (!this.push(part)) socket.pause();
        });
      } catch (error) {
        this.destroy(error as Error);
        return;
      }
      if (decoder.isComplete) finish();
    };
    const end = (): void => {
      if (isOver) return;
      if (decoder.mayEnd && !socket.errored) finish();
      else this.destroy(truncated("unexpected EOF"));
    };
    take(first);
    if (decoder.isComplete && !isOver) finish();
    if (!isOver) socket.on("data", take).on("end", end).on("close", end);
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#deadline);
    this.#socket.destroy();
    callback(error);
  }
}

function truncated(text: string): UpstreamError {
  return new UpstreamError("truncated-body", text);
}
