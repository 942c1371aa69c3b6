import { isUtf8 } from "node:buffer";
import { goQuote } from "@sluice/client/internal/api/go-json";
import { latin1Of } from "@sluice/client/internal/http/header-list";
import { ProtocolError } from "@sluice/protocols";
import {
  defaultHttp1Limits,
  MalformedResponse,
  ResponseDecoder,
  type ResponseDelivery,
  type ResponseHandler,
  type ResponseHead,
} from "@sluice/protocols/http1";
import { closeAfterServer } from "../close-after-server.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import { DeadlineError, ExchangeError, MAX_OUTPUT_BYTES } from "../probe-result.ts";
import type { ProbeSocket } from "../probe-socket.ts";
import type { HttpRequest } from "./http-request.ts";

/**
 * Heads in a probed server's answer, interim ones included; Go does not limit their number. Past
 * it: Failure.
 */
const MAX_RESPONSE_HEAD_BYTES = 1024 * 1024;

const LIMITS = {
  ...defaultHttp1Limits,
  maxHeadBytes: MAX_RESPONSE_HEAD_BYTES,
  maxHeaders: MAX_RESPONSE_HEAD_BYTES,
};
const MAX_QUOTED_BYTES = 256;

export const BODY_DEADLINE_TEXT =
  "context deadline exceeded (Client.Timeout or context cancellation while reading body)";

/**
 * Parses an HTTP/1 response as leniently as Go, because the verdict decides about containers. Keeps
 * the beginning of its body.
 */
export class Http1Response implements ResponseHandler<Buffer> {
  readonly #body = new BodyStart();
  readonly #decoder = new ResponseDecoder<Buffer>(this, {
    limits: LIMITS,
    leniency: "as-go",
    textOf: latin1Of,
  });
  #head: ResponseHead | undefined;
  #hasBytes = false;
  /** The caller can stop reading. */
  #isComplete = false;
  #isWhole = false;

  constructor() {
    this.#decoder.expect("GET");
  }

  /** True once the reply is known. Throws ExchangeError in Go's words. */
  push(chunk: Buffer): boolean {
    this.#hasBytes = true;
    this.#read(() => this.#decoder.push(chunk));
    return this.#isComplete;
  }

  /** The whole response was read. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  get hasHead(): boolean {
    return this.#head !== undefined;
  }

  /** The peer will send no more. Throws ExchangeError if no status has arrived. */
  end(): HttpReply {
    if (!this.#hasBytes) throw new ExchangeError("EOF");
    const isWhole = this.#isComplete || this.#read(() => this.#decoder.end());
    if (this.#head === undefined) throw broken("unexpected EOF");
    return this.reply(isWhole ? undefined : "unexpected EOF");
  }

  reply(bodyError?: string): HttpReply {
    const { status = 0, headers = [] } = this.#head ?? {};
    const name = headers.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === "location");
    const location = name === -1 ? undefined : headers[name + 1];
    return { status, location, body: this.#body.text, ...(bodyError === undefined ? {} : { bodyError }) };
  }

  onInterim(): void {}

  onHead(head: ResponseHead, _delivery: ResponseDelivery): void {
    this.#head = head;
  }

  onBody(part: Buffer): void {
    if (this.#body.push(part)) this.#isComplete = true;
  }

  onEnd(): void {
    this.#isComplete = true;
    this.#isWhole = true;
  }

  #read<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      const text = error instanceof MalformedResponse ? error.quoting(quote) : error.message;
      if (this.hasHead) throw new ExchangeError(text);
      if (error.code === "malformed-message") throw broken(text);
      const tooLarge = `server response headers exceeded ${MAX_RESPONSE_HEAD_BYTES} bytes; aborted`;
      throw new ExchangeError(`net/http: ${tooLarge}`);
    }
  }
}

/** Go's words for an answer that is not HTTP/1. */
function broken(reason: string): ExchangeError {
  return new ExchangeError(`net/http: HTTP/1.x transport connection broken: ${reason}`);
}

/** Go's %q, for text with one character a byte. */
function quote(latin1: string): string {
  const shown = Buffer.from(latin1.slice(0, MAX_QUOTED_BYTES), "latin1");
  if (isUtf8(shown)) return goQuote(shown.toString());
  return `"${Array.from(shown, quoteByte).join("")}"`;
}

function quoteByte(byte: number): string {
  if (byte >= 0x80) return `\\x${byte.toString(16)}`;
  return goQuote(String.fromCharCode(byte)).slice(1, -1);
}

/** The result of one exchange: a status, and the part of the body that a probe keeps. */
export interface HttpReply {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: string;
  /** The body ended before this part was complete. */
  readonly bodyError?: string;
}

/** Keeps the beginning of a body and discards the rest. */
export class BodyStart {
  readonly #parts: Buffer[] = [];
  #bytes = 0;

  /** True once it needs no more bytes. Copies the part, which may be overwritten. */
  push(part: Uint8Array): boolean {
    const wanted = part.subarray(0, MAX_OUTPUT_BYTES - this.#bytes);
    if (wanted.length > 0) this.#parts.push(Buffer.from(wanted));
    this.#bytes += wanted.length;
    return this.#bytes >= MAX_OUTPUT_BYTES;
  }

  get text(): string {
    return this.#parts.length === 1 ? String(this.#parts[0]) : Buffer.concat(this.#parts).toString();
  }
}

/**
 * Sends one GET with `Connection: close` and closes the socket. Rejects with ExchangeError or
 * DeadlineError before a status arrives.
 */
export function exchangeHttp1(
  socket: ProbeSocket,
  request: HttpRequest,
  deadline: ProbeDeadline,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const response = new Http1Response();
    const settle = (): void => {
      forgetDeadline();
      if (response.isWhole) closeAfterServer(socket);
      else socket.destroy();
    };
    const attempt = (read: () => HttpReply | undefined): void => {
      try {
        const reply = read();
        if (reply === undefined) return;
        settle();
        resolve(reply);
      } catch (error) {
        if (!(error instanceof ExchangeError)) throw error;
        fail(error);
      }
    };
    const fail = (error: Error): void => {
      settle();
      // An unreadable body makes the round an error, not a failure.
      if (response.hasHead) resolve(response.reply(error.message));
      else reject(error);
    };
    const forgetDeadline = deadline.onOver(() =>
      fail(response.hasHead ? new ExchangeError(BODY_DEADLINE_TEXT) : new DeadlineError()),
    );
    socket.hear({
      onOpen: () => {},
      onData: (chunk) => attempt(() => (response.push(chunk) ? response.reply() : undefined)),
      onEnd: () => attempt(() => response.end()),
      onError: (error) => fail(new ExchangeError(socket.textOf(error), { cause: error })),
    });
    socket.write(request.http1Text);
  });
}
