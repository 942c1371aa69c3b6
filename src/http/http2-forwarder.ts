import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { cancelStream } from "../net/abort-socket.ts";
import { internalFailure, UpstreamError } from "../net/upstream-error.ts";
import { containEvents } from "../observability/faults.ts";
import { responseHeadersOf } from "./exchange-headers.ts";
import { type BodyTimeouts, responseSilenceMs, UNREAD_BODY_LINGER_MS } from "./forward-options.ts";
import { headRefusal } from "./head-refusal.ts";
import {
  flatHeaders,
  type HeaderLine,
  type HeaderList,
  headerListOf,
  headerValue,
  withoutHeaders,
} from "./header-list.ts";
import { trailersToForward, withoutHopByHop } from "./hop-by-hop.ts";
import type { HttpDownstream } from "./http-downstream.ts";
import { http2Headers } from "./http2-headers.ts";
import type { Http2Upstream } from "./http2-upstream.ts";
import { watchBody } from "./silent-body.ts";

export interface ForwardOverHttp2Options extends BodyTimeouts {
  readonly upstream: Http2Upstream;
  readonly path: string;
  /** Last edit of the request's lines, hop-by-hop lines already gone. `host` becomes `:authority`. */
  editHeaders(headers: HeaderList): HeaderList;
  editResponseHeaders(headers: HeaderList, status: number): HeaderList;
  readonly responseHeaderTimeoutMs: number | undefined;
  /** Nothing has been sent to the client yet. */
  respondError(error: UpstreamError): void;
  /** Another upstream for a request that could not even be dialled; undefined when there is none left. */
  nextUpstream(): Http2Upstream | undefined;
}

/**
 * Forwards one exchange to an HTTP/2 upstream, as gRPC needs it: bodies stream both ways at once, trailers arrive. Resolves when the
 * exchange is over, whatever its outcome; never rejects.
 */
export async function forwardOverHttp2(
  downstream: HttpDownstream,
  options: ForwardOverHttp2Options,
): Promise<void> {
  let isOver = false;
  const closed = new Promise<void>((resolve) =>
    downstream.onClose(() => {
      isOver = true;
      resolve();
    }),
  );
  for (let upstream: Http2Upstream | undefined = options.upstream; upstream !== undefined; ) {
    try {
      const session = await upstream.session();
      if (!isOver) exchange(downstream, session, options);
      return await closed;
    } catch (error) {
      const failure =
        error instanceof UpstreamError
          ? error
          : new UpstreamError("closed-before-response", "the connection closed");
      const next: Http2Upstream | undefined =
        failure.code === "dial-failed" ? options.nextUpstream() : undefined;
      if (next === undefined) fail(downstream, failure, options);
      upstream = next;
    }
  }
  return closed;
}

/** Throws where the session cannot open another stream. */
function exchange(
  downstream: HttpDownstream,
  session: ClientHttp2Session,
  options: ForwardOverHttp2Options,
): void {
  const edited = options.editHeaders(withoutHeaders(withoutHopByHop(downstream.headers), ["expect"]));
  const stream = session.request(requestHeaders(edited, downstream.method, options.path), {
    endStream: !downstream.hasBody,
  });
  let trailers: HeaderLine[] = [];
  let failure: UpstreamError | undefined;
  let isWhole = false;
  const timer = headerTimer(stream, options.responseHeaderTimeoutMs, (error) => {
    failure = error;
  });
  const hasEnded = watchEnd(stream);
  const onFailure = (error: unknown): void => {
    cancelStream(stream);
    if (isWhole) return;
    // What is answered here is not answered again at 'close'.
    isWhole = true;
    fail(downstream, internalFailure(error), options);
  };
  containEvents(stream, "exchange", onFailure);
  downstream.contain("exchange", (error) => (isWhole ? downstream.abort() : onFailure(error)));
  stream.on("response", (headers, flags, rawHeaders?: string[]) => {
    clearTimeout(timer);
    const isHeadOnly = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0;
    const received = { headers, rawHeaders: rawHeaders ?? [], isWhole: isHeadOnly };
    failure = respond(downstream, stream, received, options);
    if (failure !== undefined) cancelStream(stream);
  });
  stream.on("trailers", (_headers, _flags, rawTrailers?: string[]) => {
    trailers = trailersToForward(headerListOf(rawTrailers ?? []));
  });
  // The reason is in `rstCode`, and 'close' follows.
  stream.on("error", () => {});
  stream.once("end", () => {
    isWhole = hasEnded() && downstream.hasResponded;
    if (!isWhole) return;
    downstream.finish(trailers);
    if (downstream.isBodyComplete) return;
    // The backend has heard a part of the request, and must not take it for the whole.
    cancelStream(stream);
    downstream.discardBody(UNREAD_BODY_LINGER_MS);
  });
  stream.once("close", () => {
    clearTimeout(timer);
    if (isWhole || downstream.isFinished) return;
    if (downstream.hasResponded) downstream.truncate();
    else
      fail(
        downstream,
        failure ?? new UpstreamError("closed-before-response", "the stream was reset"),
        options,
      );
  });
  downstream.onClose(() => {
    if (!stream.closed) cancelStream(stream);
  });
  if (downstream.hasBody)
    sendBody(downstream, stream, options, (error) => {
      failure = error;
      cancelStream(stream);
    });
}

/** Whether END_STREAM has come: behind a whole request node:http2 ends a stream that is reset with NO_ERROR in the same way. */
function watchEnd(stream: ClientHttp2Stream): () => boolean {
  let hasEnded = false;
  const { push } = stream;
  stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk === null && !stream.closed) hasEnded = true;
    return push.call(stream, chunk, encoding);
  };
  return () => hasEnded;
}

function sendBody(
  downstream: HttpDownstream,
  stream: ClientHttp2Stream,
  timeouts: BodyTimeouts,
  onSilent: (error: UpstreamError) => void,
): void {
  // An empty body may have ended while the upstream was dialled, and does not end twice.
  if (downstream.body.readableEnded) {
    if (downstream.isBodyComplete) stream.end();
    return;
  }
  downstream.body.pipe(stream, { end: false });
  const unwatch = watchBody(downstream, timeouts, onSilent);
  if (unwatch !== undefined) stream.once("close", unwatch);
  downstream.body.once("end", () => {
    if (downstream.isBodyComplete && !stream.writableEnded) stream.end();
  });
}

interface ResponseHeaders {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Nothing follows: gRPC's Trailers-Only, which clients take for one only as a single HEADERS frame with END_STREAM. */
  readonly isWhole: boolean;
}

/** Returns why the response cannot be handed on, if it cannot. */
function respond(
  downstream: HttpDownstream,
  stream: ClientHttp2Stream,
  { headers: received, rawHeaders, isWhole }: ResponseHeaders,
  options: ForwardOverHttp2Options,
): UpstreamError | undefined {
  const status = Number(received[":status"]);
  const headers = flatHeaders(headerListOf(rawHeaders).filter(([name]) => !name.startsWith(":")));
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

function requestHeaders(lines: HeaderList, method: string, path: string): OutgoingHttpHeaders {
  return {
    ":method": method,
    ":path": path,
    ":scheme": "http",
    ":authority": headerValue(lines, "host") ?? "",
    ...http2Headers(withoutHeaders(lines, ["host"])),
  };
}

function headerTimer(
  stream: ClientHttp2Stream,
  timeoutMs: number | undefined,
  onTimeout: (error: UpstreamError) => void,
): NodeJS.Timeout | undefined {
  if (timeoutMs === undefined) return undefined;
  return setTimeout(() => {
    onTimeout(new UpstreamError("response-timeout", "net/http: timeout awaiting response headers"));
    cancelStream(stream);
  }, timeoutMs);
}

function fail(
  downstream: HttpDownstream,
  error: UpstreamError,
  { respondError }: ForwardOverHttp2Options,
): void {
  if (downstream.hasResponded) downstream.abort();
  else respondError(error);
}
