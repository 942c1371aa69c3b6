import type { UpstreamError } from "../../net/upstream-error.ts";
import { type HeaderList, hasHeader } from "../header-list.ts";
import type { HttpUpstream } from "./http-upstream.ts";

export interface ForwardOptions {
  readonly upstream: HttpUpstream;
  /** Path with query for the upstream; absent: the request's own. */
  readonly path?: string | undefined;
  /** Last edit of the request's lines, hop-by-hop lines already gone: Host, X-Forwarded-*, identity. */
  editHeaders?(headers: HeaderList): HeaderList;
  /** The same for the response's. */
  editResponseHeaders?(headers: HeaderList, status: number): HeaderList;
  /** True on a server's 'checkContinue' event: the upstream decides on `100 Continue`. Elsewhere Node has sent it. */
  readonly expectsContinue?: boolean | undefined;
  /** Answer 3xx with Location by an error instead (Kubernetes' RejectForwardingRedirects). */
  readonly rejectRedirects?: boolean | undefined;
  /** From the request being sent, body included, to the response's head. Absent: no limit. */
  readonly responseHeaderTimeoutMs?: number | undefined;
  /** So long may a client keep a body of declared length to itself before there is an answer. Absent: no limit. */
  readonly bodySilenceTimeoutMs?: number | undefined;
  /**
   * So long may a side owe bytes: a client those of a chunked body before there is an answer, an upstream the taking of a body, or the rest of
   * a response of declared length. Absent: no limit.
   */
  readonly streamIdleTimeoutMs?: number | undefined;
  /** So long may a response be silent that owes nothing, because it has no declared length. Absent: no limit. */
  readonly idleTimeoutMs?: number | undefined;
  /** The whole exchange, from its start to the last byte of the response. Absent: no limit. */
  readonly exchangeTimeoutMs?: number | undefined;
}

export type BodyTimeouts = Pick<
  ForwardOptions,
  "bodySilenceTimeoutMs" | "streamIdleTimeoutMs" | "idleTimeoutMs"
>;

/** Within which the next byte of a response's body is due. Without a length it may be a watch or a conversation. */
export function responseSilenceMs(
  { streamIdleTimeoutMs, idleTimeoutMs }: BodyTimeouts,
  headers: HeaderList,
): number | undefined {
  return hasHeader(headers, "content-length") ? streamIdleTimeoutMs : idleTimeoutMs;
}

export interface ForwardExchangeOptions extends ForwardOptions {
  /** Writes the answer where there is no response to forward. Nothing has been sent to the client yet. */
  respondError(error: UpstreamError): void;
  /** Another upstream for a request that could not even be dialled; undefined when there is none left. */
  nextUpstream?(failed: HttpUpstream): HttpUpstream | undefined;
}

/** A client that goes on sending a body after its answer is disconnected after this long. */
export const UNREAD_BODY_LINGER_MS = 5_000;
