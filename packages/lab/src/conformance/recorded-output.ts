import { createHash } from "node:crypto";

/**
 * Bytes of a stream that a conformance case stores. Past it only digest, length and check continue.
 */
export const MAX_KEPT_BYTES: number = 256 * 1024;

/** Knows the expected byte at each offset. */
interface ByteCheck {
  /** The first offset with a wrong byte; -1 if all are right. */
  firstWrong(offset: number, part: Uint8Array): number;
}

/** One output stream of a session: its first bytes, length, SHA-256, and first wrong offset. */
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

  /** -1 if every byte was right, or none was expected. */
  get firstWrong(): number {
    return this.#firstWrong;
  }

  /** The first MAX_KEPT_BYTES bytes. */
  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  get text(): string {
    return this.bytes.toString("utf8");
  }

  get sha256(): string {
    return this.#hash.copy().digest("hex");
  }

  /** Resolves once the condition is true; checks it at each part. */
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
