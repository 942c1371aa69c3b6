import { ProtocolError } from "../protocol-error.ts";

/** The protocol of a server that does not answer in HTTP/1. */
type ForeignProtocol = "HTTP/2" | "TLS";

/**
 * After the length field of a server's first frame (RFC 9113 section 3.4): SETTINGS, without ACK,
 * on stream 0.
 */
const SETTINGS = "\u0004\0\0\0\0\0";
/** A TLS alert (RFC 8446 section 5.1); after the minor version, the alert's length. */
const TLS_ALERT = ["\u0015\u0003", "\0\u0002"] as const;

/**
 * Recognizes the protocol by the first bytes in place of a status line, one character a byte.
 * Undefined if neither matches, or too few bytes have arrived.
 */
export function foreignProtocolOf(text: string): ForeignProtocol | undefined {
  if (text.startsWith(SETTINGS, 3)) return "HTTP/2";
  const [version, length] = TLS_ALERT;
  return text.startsWith(version) && text.startsWith(length, 3) ? "TLS" : undefined;
}

/**
 * A response that cannot be parsed, described as Go's client would. The message contains nothing
 * from the peer.
 */
export class MalformedResponse extends ProtocolError {
  /** The quoted text is a field line, which may contain a credential. */
  readonly isOfFieldLine: boolean;
  readonly #found: string | readonly string[];
  readonly #separator: string;

  /** `found` is the peer's text, one character a byte; several texts if lines contradict each other. */
  constructor(
    message: string,
    found: string | readonly string[] = [],
    separator = " ",
    isOfFieldLine = false,
  ) {
    super("malformed-message", message);
    this.isOfFieldLine = isOfFieldLine;
    this.#found = found;
    this.#separator = separator;
  }

  /** The protocol that the peer spoke instead. */
  get foreignProtocol(): ForeignProtocol | undefined {
    return typeof this.#found === "string" ? foreignProtocolOf(this.#found) : undefined;
  }

  /** Go's full message, with the peer's text passed through `quote`. */
  quoting(quote: (text: string) => string): string {
    if (typeof this.#found === "string") return `${this.message}${this.#separator}${quote(this.#found)}`;
    if (this.#found.length === 0) return this.message;
    return `${this.message}${this.#separator}[${this.#found.map((text) => quote(text)).join(" ")}]`;
  }
}

/** A line in a head or in trailers that is not a field line. */
export function malformedLine(line: string): MalformedResponse {
  const what = line.includes(":") ? "malformed MIME header line" : "malformed MIME header: missing colon";
  return new MalformedResponse(what, line, ": ", true);
}
