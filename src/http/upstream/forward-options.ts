import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import type { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";

export interface ForwardOptions {
  readonly upstream: HttpUpstream;
  /** The path and query for the upstream; absent: the request's own. */
  readonly path?: string | undefined;
  /**
   * A final edit of the request's headers, after hop-by-hop ones are removed: Host, X-Forwarded-*,
   * identity.
   */
  editHeaders?(edit: HeaderEdit): HeaderEdit;
  /** The same for the response's headers. */
  editResponseHeaders?(edit: HeaderEdit, status: number): void;
  /**
   * True on a server's 'checkContinue' event: the upstream decides about `100 Continue`. Otherwise Node
   * has sent it already.
   */
  readonly expectsContinue?: boolean | undefined;
  /** Answers a 3xx with Location by an error (Kubernetes' RejectForwardingRedirects). */
  readonly rejectRedirects?: boolean | undefined;
  /** Limit from the sent request, including its body, to the response's head. Absent: none. */
  readonly responseHeaderTimeoutMs?: number | undefined;
  /**
   * How long a client may pause a body of declared length before there is an answer. Absent: no
   * limit.
   */
  readonly bodySilenceTimeoutMs?: number | undefined;
  /**
   * How long a side may stall: a client within a chunked body before there is an answer, an
   * upstream that does not take a body, or an upstream within a response of declared length.
   * Absent: no limit.
   */
  readonly streamIdleTimeoutMs?: number | undefined;
  /** How long a response without a declared length may be silent. Absent: no limit. */
  readonly idleTimeoutMs?: number | undefined;
  /** Limit for the whole exchange, up to the last byte of the response. Absent: none. */
  readonly exchangeTimeoutMs?: number | undefined;
}

export type BodyTimeouts = Pick<
  ForwardOptions,
  "bodySilenceTimeoutMs" | "streamIdleTimeoutMs" | "idleTimeoutMs"
>;

/**
 * The timeout for the next byte of a response body. Without a length the response may be a watch or a
 * conversation.
 */
export function responseSilenceMs(
  { streamIdleTimeoutMs, idleTimeoutMs }: BodyTimeouts,
  headers: Pick<HeaderEdit, "has">,
): number | undefined {
  return headers.has("content-length") ? streamIdleTimeoutMs : idleTimeoutMs;
}

export interface ForwardExchangeOptions extends ForwardOptions {
  /**
   * Writes an error answer if there is no response to forward. Nothing has been sent to the client
   * before.
   */
  respondError(error: UpstreamError): void;
  /** The next upstream for a request whose dial failed; undefined if there is none left. */
  nextUpstream?(failed: HttpUpstream): HttpUpstream | undefined;
}

/** How long a client may still send its body after its answer. Then it is disconnected. */
export const UNREAD_BODY_LINGER_MS = 5_000;
