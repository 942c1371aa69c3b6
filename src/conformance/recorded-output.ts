import { createHash } from "node:crypto";

/** What is kept as bytes; of more only the digest, the length and the check remain. */
export const MAX_KEPT_BYTES: number = 256 * 1024;

/** Knows which byte belongs at each offset. */
export interface ByteCheck {
  /** The first offset that holds another byte than it should; -1 where all are right. */
  firstWrong(offset: number, part: Uint8Array): number;
}

/** One output stream of a session: its first bytes, its length, its SHA-256, and where it first differs from what was expected. */
export class RecordedOutput {
  readonly #hash = createHash("sha256");
  readonly #parts: Buffer[] = [];
  readonly #check: ByteCheck | undefined;
  #keptBytes = 0;
  #byteLength = 0;
  #firstWrong = -1;
  #listeners: (() => void)[] = [];

  constructor(check?: ByteCheck) {
    this.#check = check;
  }

  add(part: Uint8Array): void {
    if (this.#check !== undefined && this.#firstWrong === -1) {
      this.#firstWrong = this.#check.firstWrong(this.#byteLength, part);
    }
    this.#byteLength += part.byteLength;
    this.#hash.update(part);
    const kept = part.subarray(0, MAX_KEPT_BYTES - this.#keptBytes);
    if (kept.byteLength > 0) {
      this.#parts.push(Buffer.from(kept));
      this.#keptBytes += kept.byteLength;
    }
    for (const listener of this.#listeners) listener();
  }

  get byteLength(): number {
    return this.#byteLength;
  }

  /** -1 where every byte was right, or nothing was expected. */
  get firstWrong(): number {
    return this.#firstWrong;
  }

  /** The first MAX_KEPT_BYTES of it. */
  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  get text(): string {
    return this.bytes.toString("utf8");
  }

  get sha256(): string {
    return this.#hash.copy().digest("hex");
  }

  /** Resolves as soon as it holds; checked again at each part. */
  until(holds: (output: RecordedOutput) => boolean): Promise<void> {
    if (holds(this)) return Promise.resolve();
    return new Promise((resolve) => {
      const listener = (): void => {
        if (!holds(this)) return;
        this.#listeners = this.#listeners.filter((other) => other !== listener);
        resolve();
      };
      this.#listeners.push(listener);
    });
  }
}
