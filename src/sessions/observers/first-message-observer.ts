import { JsonObjectEnd } from "./command-result.ts";
import type { SessionObserver } from "./session-observer.ts";

/** A node's first message: output, or a failure with the node's text. */
type FirstMessage = { readonly kind: "output" } | { readonly kind: "failure"; readonly text: string };

/**
 * A Status that is a node's first message: a few hundred bytes. Past it the message counts as
 * output.
 */
const MAX_STATUS_BYTES = 4 * 1024;
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
  readonly #end = new JsonObjectEnd();

  /** `onMessage` is called at most once. */
  constructor(onMessage: (message: FirstMessage) => void) {
    this.#onMessage = onMessage;
  }

  onData(): undefined {
    this.#finish({ kind: "output" });
  }

  onStatus(part: Uint8Array): void {
    if (this.isDone || part.byteLength === 0) return;
    const end = this.#end.endIn(part);
    const own = part.subarray(0, end);
    this.#status.push(Buffer.from(own));
    this.#statusBytes += own.byteLength;
    if (this.#end.isOther || this.#statusBytes > MAX_STATUS_BYTES) this.#finish({ kind: "output" });
    // Joined and parsed once, even if it comes in many parts. Bytes after the object are ignored.
    else if (end !== undefined) this.#finish(messageOf(Buffer.concat(this.#status).toString("utf8")));
  }

  #finish(message: FirstMessage): void {
    if (this.isDone) return;
    this.isDone = true;
    this.#status.length = 0;
    this.#onMessage(message);
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
