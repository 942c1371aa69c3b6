import { MAX_OUTPUT_BYTES } from "../probe-result.ts";

/** The result of one exchange: a status, and the part of the body that a probe keeps. */
export interface HttpReply {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  /** The body ended before that part was complete. */
  readonly bodyError?: string;
}

export const BODY_DEADLINE_TEXT =
  "context deadline exceeded (Client.Timeout or context cancellation while reading body)";

/** Keeps the beginning of a body and does not read the rest. */
export class BodyStart {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  /** True once it needs no more. Copies the part, which may be overwritten. */
  push(part: Uint8Array): boolean {
    const wanted = part.subarray(0, MAX_OUTPUT_BYTES - this.#bytes);
    if (wanted.length > 0) this.#parts.push(Buffer.from(wanted));
    this.#bytes += wanted.length;
    return this.#bytes >= MAX_OUTPUT_BYTES;
  }

  get text(): string {
    return this.#parts.length === 1 ? String(this.#parts[0]) : Buffer.concat(this.#parts).toString();
  }
}
