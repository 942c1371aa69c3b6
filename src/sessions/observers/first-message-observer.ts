import type { SessionObserver } from "./session-observer.ts";

/** Whether the first message of a node is output, or a failure, in its own words. */
export type FirstMessage = { readonly kind: "output" } | { readonly kind: "failure"; readonly text: string };

/** A node's Status is a few hundred bytes. */
const MAX_STATUS_BYTES = 4 * 1024;
const OPENING_BRACE = 0x7b;

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

  /** `onMessage` is called at most once. */
  constructor(onMessage: (message: FirstMessage) => void) {
    this.#onMessage = onMessage;
  }

  onData(): void {
    this.#finish({ kind: "output" });
  }

  onStatus(part: Uint8Array): void {
    if (this.isDone) return;
    this.#status.push(Buffer.from(part));
    this.#statusBytes += part.byteLength;
    const text = Buffer.concat(this.#status).toString("utf8");
    const isOther = text.charCodeAt(0) !== OPENING_BRACE || this.#statusBytes > MAX_STATUS_BYTES;
    const message = isOther ? ({ kind: "output" } as const) : messageOf(text);
    if (message !== undefined) this.#finish(message);
  }

  #finish(message: FirstMessage): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#status.length = 0;
    this.#onMessage(message);
  }
}

/**
 * A command that ends without output has run, whatever its exit code: only a Status without one is a failure before it. Undefined: the text
 * is not all of it yet.
 */
function messageOf(text: string): FirstMessage | undefined {
  try {
    const { status, reason, message } = JSON.parse(text) as Record<string, unknown>;
    if (status === "Failure" && reason !== "NonZeroExitCode")
      return { kind: "failure", text: String(message) };
    return { kind: "output" };
  } catch {
    return undefined;
  }
}
