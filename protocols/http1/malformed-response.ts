import { ProtocolError } from "../protocol-error.ts";

/** What a server speaks that was expected to speak HTTP/1. */
export type ForeignProtocol = "HTTP/2" | "TLS";

/** Behind the length of a server's first frame (RFC 9113 section 3.4): SETTINGS, without ACK, on stream 0. */
const SETTINGS = "\u0004\0\0\0\0\0";
/** An alert of TLS (RFC 8446 section 5.1), and behind the minor version the length of one. */
const TLS_ALERT = ["\u0015\u0003", "\0\u0002"] as const;

/** By the beginning of what was read where a status line should be, one character a byte. Undefined: neither, or not yet known. */
export function foreignProtocolOf(text: string): ForeignProtocol | undefined {
  if (text.startsWith(SETTINGS, 3)) return "HTTP/2";
  const [version, length] = TLS_ALERT;
  return text.startsWith(version) && text.startsWith(length, 3) ? "TLS" : undefined;
}

/** A response that is not read, in the words of Go's client. The message shows nothing that the peer sent. */
export class MalformedResponse extends ProtocolError {
  /** What is quoted is a field line, which may hold a credential. */
  readonly isOfFieldLine: boolean;
  readonly #found: string | readonly string[];
  readonly #separator: string;

  /** `found`: the peer's text, one character a byte; several where lines contradict each other. */
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

  /** The message as Go shows it, with the peer's text as `quote` gives it. */
  quoting(quote: (text: string) => string): string {
    if (typeof this.#found === "string") return `${this.message}${this.#separator}${quote(this.#found)}`;
    if (this.#found.length === 0) return this.message;
    return `${this.message}${this.#separator}[${this.#found.map((text) => quote(text)).join(" ")}]`;
  }
}

/** A line of a head or of trailers that is no field line. */
export function malformedLine(line: string): MalformedResponse {
  const what = line.includes(":") ? "malformed MIME header line" : "malformed MIME header: missing colon";
  return new MalformedResponse(what, line, ": ", true);
}
