import { UpstreamError } from "../net/upstream-error.ts";
import { type HeaderList, headerTokens, headerValues, listElements } from "./header-list.ts";

/** Where the body of a response ends (RFC 9112 section 6.3). */
export type BodyFraming =
  | { readonly type: "length"; readonly bytes: number }
  | { readonly type: "chunked" }
  | { readonly type: "until-close" };

/** Throws UpstreamError "malformed-response" where two readers could disagree: two lengths, or a length and chunks. */
export function bodyFramingOf(method: string, status: number, headers: HeaderList): BodyFraming {
  if (method === "HEAD" || status === 204 || status === 304) return { type: "length", bytes: 0 };
  const codings = headerTokens(headers, "transfer-encoding");
  const lengths = listElements(headerValues(headers, "content-length"));
  if (codings.length > 0) {
    if (lengths.length > 0) throw malformed("both Content-Length and Transfer-Encoding");
    if (codings.length > 1 || codings[0] !== "chunked") throw malformed("unsupported transfer encoding");
    return { type: "chunked" };
  }
  const [length] = lengths;
  if (length === undefined) return { type: "until-close" };
  if (lengths.some((other) => other !== length)) throw malformed("multiple Content-Length headers");
  if (!/^[0-9]{1,15}$/.test(length)) throw malformed("bad Content-Length");
  return { type: "length", bytes: Number(length) };
}

/** Takes the wire apart, gives body bytes out. Throws UpstreamError "malformed-response". */
export interface BodyDecoder {
  push(chunk: Buffer, emit: (part: Buffer) => void): void;
  /** The body has ended by itself; further bytes would not be its own. */
  readonly isComplete: boolean;
  /** The body may end here if the connection does. */
  readonly mayEnd: boolean;
}

export function createBodyDecoder(framing: BodyFraming): BodyDecoder {
  if (framing.type === "chunked") return new ChunkedDecoder();
  return new LengthDecoder(framing.type === "length" ? framing.bytes : Number.POSITIVE_INFINITY);
}

class LengthDecoder implements BodyDecoder {
  #bytesLeft: number;

  constructor(bytes: number) {
    this.#bytesLeft = bytes;
  }

  push(chunk: Buffer, emit: (part: Buffer) => void): void {
    const part = chunk.subarray(0, Math.min(chunk.length, this.#bytesLeft));
    this.#bytesLeft -= part.length;
    if (part.length > 0) emit(part);
  }

  get isComplete(): boolean {
    return this.#bytesLeft === 0;
  }

  get mayEnd(): boolean {
    return this.isComplete || this.#bytesLeft === Number.POSITIVE_INFINITY;
  }
}

/** A chunk-size line with its extensions, or one trailer line. */
const MAX_LINE_BYTES = 8 * 1024;
const MAX_TRAILER_LINES = 100;
const LF = 0x0a;

type ChunkedState = "size" | "data" | "after-data" | "trailers" | "complete";

/** RFC 9112 section 7.1. Chunk extensions are ignored, trailers are dropped. */
class ChunkedDecoder implements BodyDecoder {
  #state: ChunkedState = "size";
  #line = "";
  #bytesLeft = 0;
  #trailerLines = 0;

  push(chunk: Buffer, emit: (part: Buffer) => void): void {
    let at = 0;
    while (at < chunk.length && this.#state !== "complete") {
      if (this.#state !== "data") {
        at = this.#takeLine(chunk, at);
        continue;
      }
      const part = chunk.subarray(at, at + this.#bytesLeft);
      this.#bytesLeft -= part.length;
      at += part.length;
      emit(part);
      if (this.#bytesLeft === 0) this.#state = "after-data";
    }
  }

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  get mayEnd(): boolean {
    return this.isComplete;
  }

  #takeLine(chunk: Buffer, at: number): number {
    const lineFeed = chunk.indexOf(LF, at);
    const end = lineFeed === -1 ? chunk.length : lineFeed;
    if (this.#line.length + end - at > MAX_LINE_BYTES) throw malformed("chunk line too long");
    this.#line += chunk.toString("latin1", at, end);
    if (lineFeed === -1) return end;

    const line = this.#line.endsWith("\r") ? this.#line.slice(0, -1) : this.#line;
    this.#line = "";
    this.#acceptLine(line);
    return lineFeed + 1;
  }

  #acceptLine(line: string): void {
    if (this.#state === "size") {
      const size = /^([0-9A-Fa-f]{1,12})[ \t]*(;.*)?$/.exec(line)?.[1];
      if (size === undefined) throw malformed("invalid byte in chunk length");
      this.#bytesLeft = Number.parseInt(size, 16);
      this.#state = this.#bytesLeft === 0 ? "trailers" : "data";
    } else if (this.#state === "after-data") {
      if (line !== "") throw malformed("malformed chunked encoding");
      this.#state = "size";
    } else if (line === "") {
      this.#state = "complete";
    } else if (++this.#trailerLines > MAX_TRAILER_LINES) {
      throw malformed("too many trailers");
    }
  }
}

function malformed(text: string): UpstreamError {
  return new UpstreamError("malformed-response", text);
}
