import { ProtocolError } from "../protocol-error.ts";

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
