import type { SessionObserver } from "./session-observer.ts";

/** A node's first message: output, or a failure with the node's text. */
export type FirstMessage = { readonly kind: "output" } | { readonly kind: "failure"; readonly text: string };

/** A node's Status is a few hundred bytes. */
const MAX_STATUS_BYTES = 4 * 1024;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Watches a v5 pass-through session until the node's first message. Kubelets answer 101 before they
 * reach their runtime; if they cannot reach it, that message is a failure on the error channel.
 */
export class FirstMessageObserver implements SessionObserver {
  readonly isRequired = false;
  readonly payload = { node: true };
  isDone = false;
  readonly #onMessage: (message: FirstMessage) => void;
  readonly #status: Buffer[] = [];
  #statusBytes = 0;
  readonly #end = new ObjectEnd();

  /** `onMessage` is called at most once. */
  constructor(onMessage: (message: FirstMessage) => void) {
    this.#onMessage = onMessage;
  }

  onData(): undefined {
    this.#finish({ kind: "output" });
  }

  onStatus(part: Uint8Array): void {
    if (this.isDone || part.byteLength === 0) return;
    this.#status.push(Buffer.from(part));
    this.#statusBytes += part.byteLength;
    const isOther = this.#status[0]?.[0] !== OPENING_BRACE || this.#statusBytes > MAX_STATUS_BYTES;
    if (isOther) this.#finish({ kind: "output" });
    // Joined and parsed once, even if it comes in many parts.
    else if (this.#end.isIn(part)) this.#finish(messageOf(Buffer.concat(this.#status).toString("utf8")));
  }

  #finish(message: FirstMessage): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#status.length = 0;
    this.#onMessage(message);
  }
}

/** Finds the brace that closes a JSON object, part by part. */
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

/**
 * A command that ended without output did run, whatever its exit code. Only a Status without an exit
 * code means that it did not start.
 */
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
