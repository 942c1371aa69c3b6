import { STATUS_CODES } from "node:http";
import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import { cancelStream } from "../../net/abort-socket.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import type { HttpDownstream } from "../downstream/http-downstream.ts";
import { headRefusal } from "../head-refusal.ts";
import { flatHeaders, type HeaderLine, type HeaderList, headerListOf, headerValue } from "../header-list.ts";
import { withoutHopByHop } from "../hop-by-hop.ts";
import { responseHeadersOf } from "./exchange-headers.ts";
import { type BodyTimeouts, responseSilenceMs } from "./forward-options.ts";

export interface Http2ResponseOptions extends BodyTimeouts {
  editResponseHeaders(headers: HeaderList, status: number): HeaderList;
}

export interface Http2ResponseHead {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Nothing follows: gRPC's Trailers-Only, which clients take for one only as a single HEADERS frame with END_STREAM. */
  readonly isWhole: boolean;
}

/** Returns why the response cannot be handed on, if it cannot. */
export function respondOverHttp2(
  downstream: HttpDownstream,
  stream: ClientHttp2Stream,
  { headers: received, rawHeaders, isWhole }: Http2ResponseHead,
  options: Http2ResponseOptions,
): UpstreamError | undefined {
  const status = Number(received[":status"]);
  const headers = flatHeaders(withoutPseudo(headerListOf(rawHeaders)));
  const refusal = headRefusal({ status, headers }, false);
  if (refusal !== undefined) return refusal;
  try {
    const edited = options.editResponseHeaders(responseHeadersOf({ status, headers }, downstream), status);
    if (isWhole) {
      downstream.respondWhole(status, "", edited, [], []);
      stream.resume();
      return undefined;
    }
    const sink = downstream.respond(status, "", edited);
    expectBytesWithin(stream, responseSilenceMs(options, edited));
    // A body where HTTP/2 has none for the client is read, and dropped.
    if (sink.writableEnded) stream.resume();
    else {
      stream.on("data", (part: Buffer) => {
        downstream.bodyBytes += part.length;
      });
      stream.pipe(sink, { end: false });
    }
    return undefined;
  } catch (error) {
    return new UpstreamError("malformed-response", "the response cannot be forwarded", { cause: error });
  }
}

/** node:http2's own timer of the stream, which what moves either way sets back. A client that is slow has a time of its own. */
function expectBytesWithin(stream: ClientHttp2Stream, timeoutMs: number | undefined): void {
  if (timeoutMs === undefined) return;
  stream.setTimeout(timeoutMs, () => {
    if (stream.isPaused()) expectBytesWithin(stream, timeoutMs);
    else cancelStream(stream);
  });
}

/** 1xx other than 100, which each hop handles by itself. */
export function sendInterimOf(downstream: HttpDownstream, rawHeaders: readonly string[]): void {
  const lines = headerListOf(rawHeaders);
  const status = Number(headerValue(lines, ":status"));
  if (status !== 100)
    downstream.sendInterim(status, STATUS_CODES[status] ?? "", withoutHopByHop(withoutPseudo(lines)));
}

function withoutPseudo(lines: HeaderList): HeaderLine[] {
  return lines.filter(([name]) => !name.startsWith(":"));
}
