import { goQuote } from "@sluice/client/internal/api/go-json";
import {
  encodeFirstRequest,
  encodeHeaderBlock,
  encodeHeaders,
  type HeaderEntry,
} from "@sluice/protocols/http2";

/** These headers belong to one HTTP/1 connection; Go omits them too (RFC 9113 section 8.2.2). */
const NOT_IN_HTTP2 = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

/** One GET request, whose bytes are built once. */
export class HttpRequest {
  readonly #scheme: string;
  readonly #authority: string;
  readonly #requestTarget: string;
  readonly #headers: HeaderLines;
  #http1Text: string | undefined;
  #http2Start: Uint8Array | undefined;

  /** `authority` becomes Host or `:authority`. */
  constructor(scheme: string, authority: string, requestTarget: string, headers: HeaderLines) {
    this.#scheme = scheme;
    this.#authority = authority;
    this.#requestTarget = requestTarget;
    this.#headers = headers;
  }

  get http1Text(): string {
    if (this.#http1Text !== undefined) return this.#http1Text;
    const lines = this.#headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    // Go cuts a Host at a blank or slash.
    const host = this.#authority.split(/[ /]/, 1)[0];
    this.#http1Text = `GET ${this.#requestTarget} HTTP/1.1\r\nHost: ${host}\r\n${lines}Connection: close\r\n\r\n`;
    return this.#http1Text;
  }

  /**
   * All bytes that open the request's own connection. Throws Error in Go's words for a request that
   * Go's HTTP/2 client refuses to send.
   */
  get http2Start(): Uint8Array {
    if (this.#http2Start !== undefined) return this.#http2Start;
    const refusal = this.#http2Refusal();
    if (refusal !== undefined) throw new Error(refusal);
    this.#http2Start = encodeFirstRequest(encodeHeaders(1, encodeHeaderBlock(this.#http2Fields()), true));
    return this.#http2Start;
  }

  #http2Fields(): HeaderEntry[] {
    const fields: HeaderEntry[] = [
      [":method", "GET"],
      [":scheme", this.#scheme],
      [":authority", this.#authority],
      [":path", this.#requestTarget],
    ];
    for (const [name, value] of this.#headers) {
      const key = name.toLowerCase();
      // The encoder writes each character as one byte, so text becomes UTF-8 here.
      if (!NOT_IN_HTTP2.has(key)) fields.push([key, Buffer.from(value).toString("latin1")]);
    }
    return fields;
  }

  #http2Refusal(): string | undefined {
    if (!/^[A-Za-z0-9\-._~!$&'()*+,;=:[\]%]*$/.test(this.#authority)) return "http2: invalid Host header";
    for (const [name, value] of this.#headers) {
      if (name === "Upgrade" && value !== "" && value !== "chunked") {
        return `http2: invalid Upgrade request header: [${goQuote(value)}]`;
      }
      if (name === "Connection" && value !== "" && !/^(close|keep-alive)$/i.test(value)) {
        return `http2: invalid Connection request header: [${goQuote(value)}]`;
      }
      if (name === "Te" && value !== "trailers") return "http2: invalid TE request header";
    }
    return undefined;
  }
}

type HeaderLines = readonly (readonly [name: string, value: string])[];
