import { RecordingFileError } from "../../reading/recording-file-error.ts";

/** The store refused a request or did not answer. The message is one line without secrets. */
export class S3Error extends Error {
  override readonly name = "S3Error";
  /** S3's code, such as `NoSuchBucket`, or the system's code if the connection failed. */
  readonly code: string;
  /** 0 if there was no answer. */
  readonly status: number;
  readonly #isInBody: boolean;

  /** `isInBody`: the body is an error although the status is not. */
  constructor(code: string, status: number, doing: string, isInBody = false) {
    super(`${doing}: ${status === 0 ? "" : `${status} `}${code}`);
    this.code = code;
    this.status = status;
    this.#isInBody = isInBody;
  }

  /** True if the same request may succeed later. */
  get isTransient(): boolean {
    const { code, status } = this;
    const isOfStatus = status === 0 || status === 429 || status === 408 || status >= 500;
    return isOfStatus || this.#isInBody || TRANSIENT.has(code);
  }

  /** True if the next recording would fail in the same way. */
  get isOfStore(): boolean {
    return this.isTransient || this.status === 401 || this.status === 403 || OF_STORE.has(this.code);
  }
}

const TRANSIENT = new Set([
  "InternalError",
  "OperationAborted",
  "ConditionalRequestConflict",
  "RequestTimeout",
  "ServiceUnavailable",
  "SlowDown",
]);
/** The store accepted an upload, but has no object with our digest: it may not be S3 at all. */
export const NOT_STORED = "NotStored";
const OF_STORE = new Set([
  NOT_STORED,
  "AuthorizationHeaderMalformed",
  "ExpiredToken",
  "InvalidToken",
  "NoSuchBucket",
  "PermanentRedirect",
  "TemporaryRedirect",
]);

/** Describes an upload's error for a log line, by its code and never by the store's text. */
export function uploadProblemOf(error: unknown): string {
  if (error instanceof S3Error || error instanceof RecordingFileError) return error.message;
  return (error as NodeJS.ErrnoException).code ?? (error instanceof Error ? error.message : "unknown");
}

/** S3's code in an error's body, which may come with status 200; undefined if the body is not an error. */
export function errorCodeOf(body: Buffer): string | undefined {
  const text = body.toString("utf8");
  // The body may be truncated, so the closing tag is not required.
  const start = nextOpening(text, "Error", 0);
  if (start === -1) return undefined;
  const [code = ""] = elementsOf(text.slice(start), "Code");
  return /^[A-Za-z0-9.]{1,64}$/.test(code) ? code : "without a code of S3";
}

/** The contents of all elements with this name, which must not be nested. */
export function elementsOf(xml: string, name: string): string[] {
  const found: string[] = [];
  const closing = `</${name}>`;
  for (let at = 0; ; ) {
    const start = nextOpening(xml, name, at);
    if (start === -1) return found;
    const end = xml.indexOf(closing, start);
    if (end === -1) return found;
    found.push(xml.slice(start, end));
    at = end + closing.length;
  }
}

/** The offset of the next such element's content. The tag may have attributes. */
function nextOpening(xml: string, name: string, from: number): number {
  for (let at = from; ; ) {
    const start = xml.indexOf(`<${name}`, at);
    if (start === -1) return -1;
    at = start + name.length + 1;
    if (xml[at] === ">") return at + 1;
    if (xml[at] !== " ") continue;
    const end = xml.indexOf(">", at);
    return end === -1 ? -1 : end + 1;
  }
}

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Decodes XML entities. */
export function textOf(content: string): string {
  return content.replace(
    /&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|([a-z]{2,4}));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES[name] ?? whole;
      const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
