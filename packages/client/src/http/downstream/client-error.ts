import { type Server, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { beginsProxyHeader } from "@sluice/protocols/proxy-protocol";

/**
 * Silence of a client after a refusal with 400, 408, 413 or 431, as in Go's servers. Past it the
 * connection is closed.
 */
const REFUSAL_LINGER_MS = 500;
/** A connection after such a refusal. Past it, it is closed, however much the client sends. */
const MAX_REFUSAL_LINGER_MS = 5_000;

/** Bytes of a connection's first line that are looked at. Node's parser refuses a longer one by its own bounds. */
const LOOKED_BYTES = 16 * 1024;

/** Node's parser of a connection. */
interface Parser {
  /** The functions that the parser calls, by number. */
  [index: number]: unknown;
  /** A copy of the bytes that are being parsed. */
  getCurrentBuffer(): Buffer | undefined;
  readonly constructor: { readonly kOnExecute?: number };
}
type OnExecute = (parsed: number | Error) => void;
type ParsedSocket = Duplex & { readonly parser?: Parser | null };

/** Node's parser error: the bytes received, and how many were parsed. */
type ParserError = Error & {
  readonly code?: string;
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
};

/** A request with a method that Node's parser does not know, such as Vault's LIST or a cache's BAN. */
export interface UnknownMethod {
  readonly method: string;
  readonly target: string;
}

const LINE_FEED = 0x0a;
/** A token of RFC 9110 and a possible target; the rest of the line may not have arrived yet. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}) ([^\s\p{Cc}]{0,8192})(?: HTTP\/1\.[01]\r?)?$/u;
/** Node stores the connection's present answer here. */
type ServerSocket = Duplex & { readonly _httpMessage?: Pick<ServerResponse, "headersSent"> | null };

interface ClientErrorOptions {
  readonly onUnknownMethod?: ((request: UnknownMethod, socket: Duplex) => void) | undefined;
  /** Calls `answer` behind the connection's earlier answers. */
  inTurn(socket: Duplex, answer: () => void): void;
  /** Whether the connection has had a request. */
  hasRequest(socket: Duplex): boolean;
  /** The event with which the server begins to serve a connection. */
  readonly served: "connection" | "secureConnection";
}

/**
 * Answers requests that Node's parser refuses with status, reason and a linger. Unread input at the
 * close would make the kernel send RST, and the client would never see the answer.
 */
export function answerClientErrors(
  server: Server,
  maxHeaderBytes: number,
  { onUnknownMethod, inTurn, hasRequest, served }: ClientErrorOptions,
): void {
  refuseLinesWithoutVersion(server, served, hasRequest);
  server.on("clientError", (error: ParserError, socket: ServerSocket) => {
    // A proxy of another listener sent it, or this listener lacks `proxyProtocol`.
    const isProxyHeader = error.rawPacket !== undefined && beginsProxyHeader(error.rawPacket) === true;
    const unknown = isProxyHeader ? undefined : unknownMethodOf(error);
    const refusal = isProxyHeader
      ? ([400, "a PROXY protocol header, which this listener does not take from this address"] as const)
      : unknown === undefined
        ? refusalOf(error, maxHeaderBytes)
        : ([501, `the method ${unknown.method} is not known here`] as const);
    if (refusal === undefined || !socket.writable) {
      socket.destroy();
      return;
    }
    inTurn(socket, () => {
      if (socket._httpMessage?.headersSent === true) {
        socket.destroy();
        return;
      }
      if (unknown !== undefined) onUnknownMethod?.(unknown, socket);
      refuseInText(socket, refusal[0], refusal[1]);
    });
  });
}

/** Answers `400 Bad Request: reason` on a socket that has no response of Node's, closes, and lingers as Go's servers. */
export function refuseInText(socket: Duplex, status: number, reason: string): void {
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "Content-Type: text/plain; charset=utf-8",
    "Connection: close",
  ];
  lingerAfter(socket, `${head.join("\r\n")}\r\n\r\n${refusalText(status, reason)}`);
}

/** The body of such an answer. */
export function refusalText(status: number, reason: string): string {
  return `${status} ${STATUS_CODES[status]}: ${reason}`;
}

/** Undefined if the line has other faults or is not HTTP/1. */
function unknownMethodOf({ code = "", message, rawPacket, bytesParsed = 0 }: ParserError) {
  const isOfMethod =
    code === "HPE_INVALID_METHOD" || (code === "HPE_INVALID_CONSTANT" && /Invalid method/.test(message));
  if (!isOfMethod || rawPacket === undefined) return undefined;
  const begin = bytesParsed === 0 ? 0 : rawPacket.lastIndexOf(LINE_FEED, bytesParsed - 1) + 1;
  const end = rawPacket.indexOf(LINE_FEED, begin);
  const line = rawPacket.toString("latin1", begin, end === -1 ? rawPacket.byteLength : end);
  const [, method, target] = REQUEST_LINE.exec(line) ?? [];
  return method === undefined || target === undefined ? undefined : { method, target };
}

/** Undefined if the connection itself failed. */
function refusalOf({ code = "", message }: ParserError, maxHeaderBytes: number) {
  // The parser also gives this code to a supported version if the line ends with LF alone.
  if (code === "HPE_INVALID_VERSION" && /CRLF/.test(message))
    return [400, "the request line does not end with CRLF"] as const;
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return [431, `the request line and headers have more than ${maxHeaderBytes} bytes`] as const;
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return [413, "the extensions of the body's chunks are too large"] as const;
    // Also for the preface of HTTP/2 with prior knowledge: this server speaks HTTP/1.
    case "HPE_INVALID_VERSION":
    case "HPE_PAUSED_H2_UPGRADE":
      return [505, "unsupported protocol version"] as const;
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return [408, "the request did not arrive in time"] as const;
    default:
      // The parser's message: a fixed text for each code.
      return code.startsWith("HPE_") ? ([400, message.replace(/^Parse Error: /, "")] as const) : undefined;
  }
}

/** Sends the text and FIN, then reads and discards until the client closes. */
function lingerAfter(socket: Duplex, text: string): void {
  const destroy = (): void => void socket.destroy();
  // Detach the parser, which would refuse the following bytes again. Our own listener reads them.
  for (const listener of socket.listeners("data")) socket.off("data", listener as () => void);
  const idle = setTimeout(destroy, REFUSAL_LINGER_MS);
  const longest = setTimeout(destroy, MAX_REFUSAL_LINGER_MS);
  socket.on("data", () => idle.refresh());
  socket.on("error", destroy);
  socket.once("end", destroy);
  socket.once("close", () => {
    clearTimeout(idle);
    clearTimeout(longest);
  });
  socket.resume();
  socket.end(text);
}

/**
 * Refuses a connection's first request line at once if it names no version, as Go's servers do, by
 * the server's 'clientError'. Node's parser takes it for HTTP/0.9 and waits for the rest of a head.
 */
function refuseLinesWithoutVersion(
  server: Server,
  event: "connection" | "secureConnection",
  hasRequest: (socket: Duplex) => boolean,
): void {
  const serve = server.listeners(event);
  server.removeAllListeners(event);
  server.on(event, (socket: ParsedSocket) => {
    const early = unreadOf(socket);
    for (const listener of serve) listener.call(server, socket);
    watch(socket, early, hasRequest);
  });
}

/** Bytes that were read before the connection became one of this server. They stay unread. */
function unreadOf(socket: Duplex): string {
  if (socket.readableLength === 0) return "";
  const bytes = socket.read() as Buffer;
  socket.unshift(bytes);
  return bytes.toString("latin1", 0, LOOKED_BYTES);
}

function watch(socket: ParsedSocket, early: string, hasRequest: (socket: Duplex) => boolean): void {
  const { parser } = socket;
  const index = parser?.constructor.kOnExecute;
  if (!parser || index === undefined || typeof parser[index] !== "function") return;
  const onExecute = parser[index] as OnExecute;
  let line = early;
  const judge = (): boolean | undefined => lacksVersion(line);
  if (judge() !== undefined) {
    if (judge() === true) onExecute(new LineWithoutVersion());
    return;
  }
  const executed: OnExecute = (parsed) => {
    if (parsed instanceof Error || hasRequest(socket)) {
      parser[index] = onExecute;
      onExecute(parsed);
      return;
    }
    line += parser.getCurrentBuffer()?.toString("latin1", 0, LOOKED_BYTES) ?? "";
    const isOld = judge();
    if (isOld !== undefined) parser[index] = onExecute;
    onExecute(isOld === true ? new LineWithoutVersion() : parsed);
  };
  parser[index] = executed;
}

/** Undefined until the line has arrived. The parser reports its other faults. */
function lacksVersion(text: string): boolean | undefined {
  const [, line] = /^[\r\n]*([^\r\n]+)[\r\n]/.exec(text) ?? [];
  if (line !== undefined) return !/\/\d\.\d$/.test(line);
  return text.length >= LOOKED_BYTES ? false : undefined;
}

/** An error like those of Node's parser. */
class LineWithoutVersion extends Error {
  readonly code = "HPE_NO_VERSION";
  readonly bytesParsed = 0;

  constructor() {
    super("Parse Error: the request line names no HTTP version");
  }
}
