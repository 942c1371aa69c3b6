import type { SessionObserver } from "./session-observer.ts";

/** Whether the first message of a node is output, or a failure, in its own words. */
export type FirstMessage = { readonly kind: "output" } | { readonly kind: "failure"; readonly text: string };

/** A node's Status is a few hundred bytes. */
const MAX_STATUS_BYTES = 4 * 1024;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Looks at a v5 session that passes through until its first message. Kubelets answer 101 before they
 * reach their runtime; a failure to do so is the first message, on the error channel.
 */
export class FirstMessageObserver implements SessionObserver {
  readonly isRequired = false;
  readonly payload = "node";
  isDone = false;
  readonly #onMessage: (message: FirstMessage) => void;
  readonly #status: Buffer[] = [];
  #statusBytes = 0;
  readonly #end = new ObjectEnd();

  /** `onMessage` is called at most once. */
  constructor(onMessage: (message: FirstMessage) => void) {
    this.#onMessage = onMessage;
  }

  onData(): void {
    this.#finish({ kind: "output" });
  }

  onStatus(part: Uint8Array): void {
    if (this.isDone || part.byteLength === 0) return;
    this.#status.push(Buffer.from(part));
    this.#statusBytes += part.byteLength;
    const isOther = this.#status[0]?.[0] !== OPENING_BRACE || this.#statusBytes > MAX_STATUS_BYTES;
    if (isOther) this.#finish({ kind: "output" });
    // Joined and parsed once, however many parts it comes in.
    else if (this.#end.isIn(part)) this.#finish(messageOf(Buffer.concat(this.#status).toString("utf8")));
  }

  #finish(message: FirstMessage): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#status.length = 0;
    this.#onMessage(message);
  }
}

/** Looks for the brace that closes a JSON object, part by part. */
class ObjectEnd {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;

  isIn(part: Uint8Array): boolean {
    for (const byte of part) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        this.#isEscaped = byte === BACKSLASH;
        this.#isInText = byte !== QUOTE;
      } else if (byte === QUOTE) this.#isInText = true;
      else if (byte === OPENING_BRACE) this.#depth += 1;
      else if (byte === CLOSING_BRACE) {
        this.#depth -= 1;
        if (this.#depth === 0) return true;
      }
    }
    return false;
  }
}

/** A command that ends without output has run, whatever its exit code: only a Status without one is a failure before it. */
function messageOf(text: string): FirstMessage {
  try {
    const { status, reason, message } = JSON.parse(text) as Record<string, unknown>;
    if (status === "Failure" && reason !== "NonZeroExitCode")
      return { kind: "failure", text: String(message) };
    return { kind: "output" };
  } catch {
    return { kind: "output" };
  }
}
