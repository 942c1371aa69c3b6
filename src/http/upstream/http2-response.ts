import { STATUS_CODES } from "node:http";
import type { ClientHttp2Stream, IncomingHttpHeaders } from "node:http2";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headRefusal } from "@sluice/client/internal/http/head-refusal";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import {
  type HeaderLine,
  type HeaderList,
  headerListOf,
  headerValue,
} from "@sluice/client/internal/http/header-list";
import { cancelStream } from "@sluice/client/internal/net/abort-socket";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { requestEdit } from "../hop-by-hop.ts";
import { receivedFields } from "../http2-headers.ts";
import { responseHeadersOf } from "./exchange-headers.ts";
import { type BodyTimeouts, responseSilenceMs } from "./forward-options.ts";

export interface Http2ResponseOptions extends BodyTimeouts {
  editResponseHeaders(edit: HeaderEdit, status: number): void;
}

interface Http2ResponseHead {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /**
   * Nothing follows: gRPC's Trailers-Only, which clients recognize only as a single HEADERS frame with
   * END_STREAM.
   */
  readonly isWhole: boolean;
}

/** Returns why the response cannot be forwarded; undefined if it can. */
export function respondOverHttp2(
  downstream: HttpDownstream,
  stream: ClientHttp2Stream,
  { headers: received, rawHeaders, isWhole }: Http2ResponseHead,
  options: Http2ResponseOptions,
): UpstreamError | undefined {
  const status = Number(received[":status"]);
  const refusal = headRefusal({ status, headers: rawHeaders }, false);
  if (refusal !== undefined) return refusal;
  try {
    const edited = responseHeadersOf(status, receivedFields(rawHeaders), downstream, options);
    edited.dropIf(isPseudo);
    if (isWhole) {
      downstream.respondWhole(status, "", edited, [], []);
      stream.resume();
      return undefined;
    }
    const sink = downstream.respond(status, "", edited);
    expectBytesWithin(stream, responseSilenceMs(options, edited));
    // The client's response has no body in HTTP/2, so the backend's is read and dropped.
    if (sink.writableEnded) stream.resume();
    else
      stream.on("data", (part: Buffer) => {
        downstream.bodyBytes += part.length;
        if (sink.destroyed || sink.writableEnded || sink.write(part)) return;
        stream.pause();
        sink.once("drain", () => stream.resume());
      });
    return undefined;
  } catch (error) {
    return new UpstreamError("malformed-response", "the response cannot be forwarded", { cause: error });
  }
}

/**
 * Uses node:http2's timer of the stream, which restarts with any traffic in either direction. A slow
 * client has its own timeout. The stream's owner calls `forgetTimer` at its end.
 */
function expectBytesWithin(stream: ClientHttp2Stream, timeoutMs: number | undefined): void {
  if (timeoutMs === undefined) return;
  stream.setTimeout(timeoutMs);
  stream.on("timeout", () => {
    if (stream.isPaused()) stream.setTimeout(timeoutMs);
    else cancelStream(stream);
  });
}

/** Forwards a 1xx other than 100, which each hop handles by itself. */
export function sendInterimOf(downstream: HttpDownstream, rawHeaders: readonly string[]): void {
  const lines = headerListOf(receivedFields(rawHeaders));
  const status = Number(headerValue(lines, ":status"));
  if (status !== 100)
    downstream.sendInterim(status, STATUS_CODES[status] ?? "", requestEdit(withoutPseudo(lines)).lines());
}

function withoutPseudo(lines: HeaderList): HeaderLine[] {
  return lines.filter(([name]) => !isPseudo(name));
}

function isPseudo(name: string): boolean {
  return name.startsWith(":");
}
