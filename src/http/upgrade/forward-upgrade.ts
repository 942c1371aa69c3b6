import type { Duplex } from "node:stream";
import { withReusedReads } from "../../net/accepted-socket.ts";
import type { UpstreamEndpoint } from "../../net/dial.ts";
import type { UpgradedConnection } from "../../net/upgraded-connection.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import type { RequestTrace } from "../../observability/trace.ts";
import { type HeaderList, hasHeader, headerValues, listElements } from "../header-list.ts";
import { upgradeHeaders } from "../hop-by-hop.ts";
import { answerSwitched } from "./answer-switched.ts";
import { copyRefusal } from "./copy-refusal.ts";
import { isSwitchedTo, requestUpgrade, type UpgradeRequest } from "./upgrade-request.ts";

/** A socket of an 'upgrade' event that has not been answered, watched for the client leaving. */
export interface WaitingClient {
  readonly socket: Duplex;
  /** Aborted when the client went away. */
  readonly signal: AbortSignal;
  /** Stops watching; the socket is paused then, and `head` is what the client sent early. */
  release(): UpgradedConnection;
}

export interface ForwardUpgradeOptions {
  readonly endpoint: UpstreamEndpoint;
  readonly method: string;
  /** Path with query for the upstream. */
  readonly path: string;
  /** The client's lines, unedited. */
  readonly headers: HeaderList;
  /** Last edit, hop-by-hop lines already gone and Connection rebuilt: Host, X-Forwarded-*, identity. */
  readonly editHeaders?: ((headers: HeaderList) => HeaderList) | undefined;
  /** The same for those of a response that switches. */
  readonly editResponseHeaders?: ((headers: HeaderList) => HeaderList) | undefined;
  /** Absent: `DEFAULT_ALLOWED_UPGRADES`. "any": whatever is asked for, but never `h2c`. */
  readonly allowedProtocols?: readonly string[] | "any" | undefined;
  readonly dialTimeoutMs?: number | undefined;
  readonly responseHeaderTimeoutMs?: number | undefined;
  readonly maxResponseHeadBytes?: number | undefined;
  /** As in UpgradeRequest: a server may ignore `Upgrade` (RFC 9110 section 7.8). Not for HTTP/2 streams, where a 200 would switch. */
  readonly relayAnswersMs?: number | undefined;
  /** Connects to the endpoint in another way than `dial`, e.g. through a proxy; the socket is as `dial` gives it. */
  readonly connect?: UpgradeRequest["connect"];
  readonly trace?: RequestTrace | undefined;
  /** Carries the bytes once both sides have switched and the client has its 101. Both sockets are paused: resume them. */
  carry(downstream: UpgradedConnection, upstream: UpgradedConnection): void;
}

/** What may be switched to (kubernetes/kubernetes#72112): `h2c` would open a way around every check of requests. */
export const DEFAULT_ALLOWED_UPGRADES: readonly string[] = ["websocket", "SPDY/3.1"];

/**
 * Forwards an upgrade verbatim. A raw pipe is laid only behind a 101 that switches to what was asked; a refusal is
 * copied and both connections are closed; a redirect or success is an error (CVE-2018-1002105, CVE-2020-8559).
 *
 * Resolves with the upstream's status when the bytes are being carried or the refusal is delivered. Throws UpstreamError, with the client's socket
 * unanswered and still watched, for the caller to answer; "aborted" when the client left.
 */
export async function forwardUpgrade(client: WaitingClient, options: ForwardUpgradeOptions): Promise<number> {
  const protocol = requestedProtocol(options);
  const headers = upgradeHeaders(options.headers, protocol);
  const { endpoint, method, path, dialTimeoutMs, responseHeaderTimeoutMs, maxResponseHeadBytes } = options;
  const response = await requestUpgrade({
    endpoint,
    method,
    path,
    headers: options.editHeaders?.(headers) ?? headers,
    dialTimeoutMs,
    responseHeaderTimeoutMs,
    maxResponseHeadBytes,
    relayAnswersMs: options.relayAnswersMs,
    connect: options.connect,
    trace: options.trace,
    signal: client.signal,
  });
  if (response.kind === "refused") {
    await copyRefusal(response, client.release().socket, { deadlineMs: options.relayAnswersMs });
    return response.status;
  }
  if (client.signal.aborted || !isSwitchedTo(response, protocol)) {
    response.socket.destroy();
    if (client.signal.aborted) throw new UpstreamError("aborted", "context canceled");
    throw new UpstreamError("upgrade-mismatch", "unable to upgrade: missing upgrade headers in response");
  }
  const downstream = withReusedReads(client.release());
  const { rawHeaders } = response;
  const lines = options.editResponseHeaders?.(rawHeaders) ?? rawHeaders;
  answerSwitched(downstream.socket, lines, response.statusMessage);
  options.carry(downstream, { socket: response.socket, head: response.head });
  return response.status;
}

/** The one protocol that is asked for. Lists are refused: which of them was switched to could be disputed. */
function requestedProtocol({
  headers,
  allowedProtocols = DEFAULT_ALLOWED_UPGRADES,
}: ForwardUpgradeOptions): string {
  const hasLength = headerValues(headers, "content-length").some((value) => !/^0+$/.test(value));
  if (hasLength || hasHeader(headers, "transfer-encoding")) {
    throw new UpstreamError("invalid-request", "an upgrade request cannot have a body");
  }
  const offered = listElements(headerValues(headers, "upgrade"));
  // An offer that a server may ignore, and every one does since RFC 9113.
  const requested =
    allowedProtocols === "any" ? offered.filter((name) => name.toLowerCase() !== "h2c") : offered;
  const [first] = requested;
  const isAllowed =
    allowedProtocols === "any" ||
    allowedProtocols.some((allowed) => allowed.toLowerCase() === first?.toLowerCase());
  if (requested.length !== 1 || first === undefined || !isAllowed) {
    throw new UpstreamError("upgrade-refused", "unsupported upgrade protocol");
  }
  return first;
}
