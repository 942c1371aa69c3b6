import { type BodyDecoder, createBodyDecoder } from "../../http/response-body.ts";
import { ExchangeError } from "../exchange-error.ts";
import { BodyStart, type HttpReply } from "./http-reply.ts";
import { broken, endOfHead, type Http1Head, parseHttp1Head } from "./http1-head.ts";

/** Status lines and headers of all responses of an exchange together, interim ones included. */
export const MAX_RESPONSE_HEAD_BYTES = 1024 * 1024;

const FIRST_BUFFER_BYTES = 4 * 1024;
const NOTHING = Buffer.alloc(0);

/** Takes an HTTP/1 response apart as it arrives and keeps the beginning of its body. Throws ExchangeError. */
export class Http1Response {
  readonly #body = new BodyStart();
  #buffer = NOTHING;
  #bufferedBytes = 0;
  #headBytes = 0;
  #head: Http1Head | undefined;
  #decoder: BodyDecoder | undefined;
  #isComplete = false;

  /** True once the reply is known. */
  push(chunk: Buffer): boolean {
    if (this.#decoder === undefined) this.#pushHead(chunk);
    else this.#pushBody(chunk);
    return this.#isComplete;
  }

  /** Nothing of it is left to read. */
  get isWhole(): boolean {
    return this.#decoder?.isComplete === true;
  }

  get hasHead(): boolean {
    return this.#decoder !== undefined;
  }

  /** The peer will send no more. Throws where that is too early for a status. */
  end(): HttpReply {
    if (this.#decoder === undefined) {
      if (this.#headBytes === 0) throw new ExchangeError("EOF");
      // Go reads the last line as far as it goes, and trips over that first.
      parseHttp1Head(this.#buffer.subarray(0, this.#bufferedBytes));
      throw broken("unexpected EOF");
    }
    return this.reply(this.#isComplete || this.#decoder.mayEnd ? undefined : "unexpected EOF");
  }

  reply(bodyError?: string): HttpReply {
    const { status = 0, headers } = this.#head ?? {};
    const location = headers?.get("location")?.[0];
    return { status, location, body: this.#body.text, ...(bodyError === undefined ? {} : { bodyError }) };
  }

  #pushHead(chunk: Buffer): void {
    this.#headBytes += chunk.length;
    // Most heads come whole: then the chunk is all there is to look at.
    const searchFrom = Math.max(0, this.#bufferedBytes - 3);
    const bytes = this.#bufferedBytes === 0 ? chunk : this.#appended(chunk);
    const end = endOfHead(bytes, searchFrom);
    if (end === -1) {
      this.#checkHeadBytes();
      if (bytes === chunk) this.#appended(chunk);
      return;
    }
    const head = parseHttp1Head(bytes.subarray(0, end));
    const rest = bytes.subarray(end);
    if (head.status >= 100 && head.status < 200 && head.status !== 101) {
      this.#bufferedBytes = 0;
      this.#headBytes -= rest.length;
      this.#checkHeadBytes();
      if (rest.length > 0) this.#pushHead(rest);
      return;
    }
    this.#head = head;
    this.#decoder = createBodyDecoder(framingOf(head));
    this.#pushBody(rest);
    this.#buffer = NOTHING;
  }

  #checkHeadBytes(): void {
    if (this.#headBytes <= MAX_RESPONSE_HEAD_BYTES) return;
    throw new ExchangeError(
      `net/http: server response headers exceeded ${MAX_RESPONSE_HEAD_BYTES} bytes; aborted`,
    );
  }

  #pushBody(chunk: Buffer): void {
    const decoder = this.#decoder as BodyDecoder;
    let isEnough = false;
    decoder.push(chunk, (part) => {
      isEnough = this.#body.push(part) || isEnough;
    });
    this.#isComplete = isEnough || decoder.isComplete;
  }

  #appended(chunk: Buffer): Buffer {
    const needed = this.#bufferedBytes + chunk.length;
    if (needed > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2, FIRST_BUFFER_BYTES));
      this.#buffer.copy(larger, 0, 0, this.#bufferedBytes);
      this.#buffer = larger;
    }
    chunk.copy(this.#buffer, this.#bufferedBytes);
    this.#bufferedBytes = needed;
    return this.#buffer.subarray(0, needed);
  }
}

/** As Go: chunks win over a length, and lengths that differ are refused. */
function framingOf({ status, headers }: Http1Head): Parameters<typeof createBodyDecoder>[0] {
  if (status === 204 || status === 304) return { type: "length", bytes: 0 };
  const codings = headers.get("transfer-encoding") ?? [];
  if (codings.length > 0) {
    if (codings.length === 1 && codings[0]?.toLowerCase() === "chunked") return { type: "chunked" };
    throw broken(`unsupported transfer encoding: ${JSON.stringify(codings[0])}`);
  }
  const lengths = headers.get("content-length") ?? [];
  const [length] = lengths;
  if (length === undefined) return { type: "until-close" };
  if (lengths.some((other) => other !== length)) {
    const all = lengths.map((value) => JSON.stringify(value)).join(" ");
    throw broken(`http: message cannot contain multiple Content-Length headers; got [${all}]`);
  }
  if (!/^[0-9]{1,15}$/.test(length)) throw broken(`bad Content-Length ${JSON.stringify(length)}`);
  return { type: "length", bytes: Number(length) };
}
