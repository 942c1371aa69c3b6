import { ProtocolError } from "../../../protocols/protocol-error.ts";
import { CHANNEL } from "../../../protocols/remotecommand/index.ts";
import { WebSocketFrameDecoder } from "../../../protocols/websocket/index.ts";

/** Whether the first thing that a node says is output, or that the session failed, in its own words. */
export type FirstWord = { readonly kind: "output" } | { readonly kind: "failure"; readonly text: string };

/** A node's Status is a few hundred bytes. */
const MAX_STATUS_BYTES = 4 * 1024;
/** A node that sends so much without a first word is read along no further. */
const MAX_WATCHED_BYTES = 64 * 1024;

/**
 * Reads along with the beginning of a WebSocket v5 session that passes through, until the node's first word is known. Kubelets answer
 * 101 before they ask their runtime: that they can not reach it they say on the error channel, as the first word of the session.
 *
 * It changes nothing, looks at copies of the first bytes only, and gives up on what it does not understand.
 */
export class FirstMessageObserver {
  readonly #onWord: (word: FirstWord) => void;
  readonly #decoder: WebSocketFrameDecoder;
  #watchedBytes = 0;
  #status: Buffer[] = [];
  #statusBytes = 0;
  #channel: number | undefined;
  #isDone = false;

  /** `onWord` is called at most once. */
  constructor(onWord: (word: FirstWord) => void) {
    this.#onWord = onWord;
    this.#decoder = new WebSocketFrameDecoder("client", {
      onMessage: (part, isFirst, isLast) => this.#onPart(part, isFirst, isLast),
      onPing: () => {},
      onPong: () => {},
      onClose: () => this.#finish(undefined),
    });
  }

  /** Takes the next bytes of the node; true once it needs no more. */
  see(chunk: Uint8Array): boolean {
    this.#watchedBytes += chunk.byteLength;
    try {
      // The decoder owns what it is given; the chunk belongs to the client.
      this.#decoder.push(Uint8Array.from(chunk.subarray(0, MAX_WATCHED_BYTES)));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#isDone = true;
    }
    if (this.#watchedBytes >= MAX_WATCHED_BYTES) this.#isDone = true;
    return this.#isDone;
  }

  #onPart(part: Uint8Array, isFirst: boolean, isLast: boolean): void {
    if (this.#isDone) return;
    if (isFirst) this.#channel = part[0];
    const payload = isFirst ? part.subarray(1) : part;
    // Servers open with an empty message for each channel.
    if (payload.byteLength > 0 && this.#channel !== CHANNEL.ERROR) {
      this.#finish({ kind: "output" });
      return;
    }
    if (payload.byteLength > 0) this.#collect(payload);
    if (isLast && this.#statusBytes > 0) this.#finish(wordOf(Buffer.concat(this.#status).toString("utf8")));
  }

  #collect(payload: Uint8Array): void {
    this.#status.push(Buffer.from(payload.subarray(0, MAX_STATUS_BYTES - this.#statusBytes)));
    this.#statusBytes = Math.min(MAX_STATUS_BYTES, this.#statusBytes + payload.byteLength);
  }

  #finish(word: FirstWord | undefined): void {
    this.#isDone = true;
    this.#status = [];
    if (word !== undefined) this.#onWord(word);
  }
}

/** A command that ends without output has run, whatever its exit code: only a Status without one is a failure of the way there. */
function wordOf(text: string): FirstWord {
  try {
    const { status, reason, message } = JSON.parse(text) as Record<string, unknown>;
    if (status === "Failure" && reason !== "NonZeroExitCode")
      return { kind: "failure", text: String(message) };
  } catch {
    // No Status of Kubernetes'.
  }
  return { kind: "output" };
}
