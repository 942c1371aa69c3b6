import { latin1Text } from "../bytes/index.ts";
import { ChunkedBody } from "./chunked-body.ts";
import {
  defaultHttp1Limits,
  type FieldLines,
  foreignProtocolOf,
  type Http1Limits,
  type Leniency,
  MalformedResponse,
  parseFieldLines,
  unfoldedSection,
} from "./field-lines.ts";
import {
  deliveryOf,
  parseResponseHead,
  type ResponseDelivery,
  type ResponseHead,
} from "./response-framing.ts";
import { SectionReader, type TextOf } from "./section-reader.ts";

/** Receives a response as it arrives. An exception from a handler ends the decoder. */
export interface ResponseHandler<Chunk extends Uint8Array = Uint8Array> {
  /** A 1xx response other than 101, before the final one. */
  onInterim(head: ResponseHead): void;
  /** The final response. After a 101 the connection stops speaking HTTP, and `push` leaves the rest alone. */
  onHead(head: ResponseHead, delivery: ResponseDelivery): void;
  /** A part of the body: a slice of the pushed chunk, never empty. */
  onBody(part: Chunk): void;
  /** The response is complete. */
  onEnd(trailers: FieldLines): void;
}

export interface ResponseDecoderOptions<Chunk extends Uint8Array = Uint8Array> {
  readonly limits?: Http1Limits | undefined;
  /** Absent: `none`. */
  readonly leniency?: Leniency | undefined;
  /** Turns bytes into text, one character each; absent: in plain ECMAScript. */
  readonly textOf?: TextOf<Chunk> | undefined;
}

const NO_LINES: FieldLines = [];

type State = "idle" | "head" | "length" | "chunked" | "trailers" | "until-close" | "failed";

/**
 * Decodes consecutive responses on one HTTP/1.x connection from chunks cut anywhere. Never assembles bodies.
 * Refuses ambiguous framing and anything but HTTP/1, except as `leniency` allows.
 */
export class ResponseDecoder<Chunk extends Uint8Array = Uint8Array> {
  readonly #handler: ResponseHandler<Chunk>;
  readonly #limits: Http1Limits;
  readonly #leniency: Leniency;
  readonly #section: SectionReader<Chunk>;
  readonly #chunks: ChunkedBody<Chunk>;
  #state: State = "idle";
  #method = "GET";
  #bytesLeft = 0;
  #hasFinished = false;

  constructor(handler: ResponseHandler<Chunk>, options: ResponseDecoderOptions<Chunk> = {}) {
    this.#handler = handler;
    this.#limits = options.limits ?? defaultHttp1Limits;
    this.#leniency = options.leniency ?? "none";
    this.#section = new SectionReader(options.textOf ?? latin1Text);
    this.#chunks = new ChunkedBody(this.#limits.maxChunkLineBytes);
  }

  /**
   * Sets the method of the next request; only HEAD matters. Call it after the previous response is
   * complete.
   */
  expect(method: string): void {
    this.#method = method;
    this.#state = "head";
    this.#section.bytesLeft = this.#limits.maxHeadBytes;
  }

  /** No response is expected: the previous one is complete, or there was none. */
  get isIdle(): boolean {
    return this.#state === "idle";
  }

  /**
   * Returns the index after the expected response's bytes; the server sent the rest unasked. Throws
   * MalformedResponse, or ProtocolError "header-block-too-large" or "too-many-headers", and is
   * finished then.
   */
  push(chunk: Chunk): number {
    try {
      let at = 0;
      // Stops here even if the handler already expects the next response: bytes that arrive before
      // a request cannot answer it.
      this.#hasFinished = this.#state === "idle";
      while (at < chunk.length && !this.#hasFinished) at = this.#step(chunk, at);
      return at;
    } catch (error) {
      this.#state = "failed";
      throw error;
    }
  }

  /**
   * The connection has ended. True if that completes the expected response, or if none was
   * expected. Throws MalformedResponse for a truncated line, as Go does.
   */
  end(): boolean {
    if (this.#state === "until-close") this.#finish(NO_LINES);
    const { incomplete } = this.#section;
    if (this.#leniency === "as-go" && this.#state === "head" && incomplete !== "") {
      this.#state = "failed";
      parseResponseHead(`${incomplete}\n\n`, this.#limits.maxHeaders, this.#leniency);
    }
    return this.#state === "idle";
  }

  #step(chunk: Chunk, at: number): number {
    switch (this.#state) {
      case "head":
      case "trailers":
        return this.#readSection(chunk, at);
      case "chunked": {
        const next = this.#chunks.push(chunk, at, this.#handler);
        if (this.#chunks.isAtTrailers) {
          this.#state = "trailers";
          this.#section.bytesLeft = this.#limits.maxHeadBytes;
        }
        return next;
      }
      case "length":
      case "until-close":
        return this.#readBody(chunk, at);
      default:
        throw new Error("the decoder has failed before");
    }
  }

  #readSection(chunk: Chunk, at: number): number {
    const next = this.#section.push(chunk, at);
    const { text } = this.#section;
    if (text === undefined) {
      if (this.#state === "head" && this.#leniency !== "as-go") this.#refuseForeign();
      return next;
    }
    if (this.#state === "trailers") this.#finish(this.#trailersIn(text));
    else this.#takeHead(parseResponseHead(text, this.#limits.maxHeaders, this.#leniency));
    return next;
  }

  /** Another protocol's first message may be one line, or have no line end; its server then waits. */
  #refuseForeign(): void {
    const { beginning, hasLine } = this.#section;
    if (beginning.charCodeAt(0) < 0x20 && foreignProtocolOf(beginning) !== undefined)
      throw new MalformedResponse("malformed HTTP response", this.#section.incomplete);
    if (!hasLine || beginning.startsWith("HTTP/1.")) return;
    const text = this.#section.incomplete;
    parseResponseHead(`${text.slice(0, text.indexOf("\n") + 1)}\n`, this.#limits.maxHeaders, this.#leniency);
  }

  #trailersIn(section: string): FieldLines {
    const lines = this.#leniency === "none" ? section : unfoldedSection(section, 0);
    return parseFieldLines(lines, 0, this.#limits.maxHeaders, this.#leniency);
  }

  #takeHead(head: ResponseHead): void {
    if (head.status >= 100 && head.status < 200 && head.status !== 101) {
      this.#handler.onInterim(head);
      return;
    }
    const delivery = deliveryOf(this.#method, head, this.#leniency);
    const { framing } = delivery;
    if (framing === "chunked") this.#chunks.start();
    this.#bytesLeft = typeof framing === "number" ? framing : Number.POSITIVE_INFINITY;
    this.#state = typeof framing === "number" ? "length" : framing;
    this.#handler.onHead(head, delivery);
    if (this.#bytesLeft === 0) this.#finish(NO_LINES);
  }

  #readBody(chunk: Chunk, at: number): number {
    const end = Math.min(chunk.length, at + this.#bytesLeft);
    this.#bytesLeft -= end - at;
    this.#handler.onBody(at === 0 && end === chunk.length ? chunk : (chunk.subarray(at, end) as Chunk));
    if (this.#bytesLeft === 0) this.#finish(NO_LINES);
    return end;
  }

  #finish(trailers: FieldLines): void {
    this.#state = "idle";
    this.#hasFinished = true;
    this.#handler.onEnd(trailers);
  }
}
