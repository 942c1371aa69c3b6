import {
  MalformedResponse,
  ResponseDecoder,
  type ResponseDecoderOptions,
  type ResponseDelivery,
  type ResponseHandler,
  type ResponseHead,
} from "../../../../protocols/http1/index.ts";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";

export type RecordedEvent =
  | { readonly type: "interim"; readonly head: ResponseHead }
  | { readonly type: "head"; readonly head: ResponseHead; readonly delivery: ResponseDelivery }
  | { readonly type: "body"; text: string }
  | { readonly type: "end"; readonly trailers: readonly string[] }
  | { readonly type: "refused"; readonly code: string; readonly message: string };

/** Feeds a decoder and keeps what it says; neighbouring parts of a body are one event, wherever they were cut. */
export class Recorder implements ResponseHandler<Buffer> {
  readonly events: RecordedEvent[] = [];
  readonly decoder: ResponseDecoder<Buffer>;
  /** Bytes that belonged to no expected response. */
  surplus = "";
  /** What refused it with a piece of what came. */
  error: MalformedResponse | undefined;
  #isRefused = false;

  constructor(method = "GET", options: ResponseDecoderOptions<Buffer> = {}) {
    this.decoder = new ResponseDecoder<Buffer>(this, options);
    this.decoder.expect(method);
  }

  push(bytes: Buffer | string): this {
    const chunk = typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes;
    if (this.#isRefused) return this;
    try {
      this.surplus += chunk.toString("latin1", this.decoder.push(chunk));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#isRefused = true;
      if (error instanceof MalformedResponse) this.error = error;
      this.events.push({ type: "refused", code: error.code, message: error.message });
    }
    return this;
  }

  get body(): string {
    return this.events.map((event) => (event.type === "body" ? event.text : "")).join("");
  }

  get refusal(): string | undefined {
    const last = this.events.at(-1);
    return last?.type === "refused" ? `${last.code}: ${last.message}` : undefined;
  }

  onInterim(head: ResponseHead): void {
    this.events.push({ type: "interim", head });
  }

  onHead(head: ResponseHead, delivery: ResponseDelivery): void {
    this.events.push({ type: "head", head, delivery });
  }

  onBody(part: Buffer): void {
    const last = this.events.at(-1);
    if (part.length === 0) throw new Error("an empty part");
    if (last?.type === "body") last.text += part.toString("latin1");
    else this.events.push({ type: "body", text: part.toString("latin1") });
  }

  onEnd(trailers: readonly string[]): void {
    this.events.push({ type: "end", trailers });
  }
}
