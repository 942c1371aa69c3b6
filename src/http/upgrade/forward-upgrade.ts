import type { Duplex } from "node:stream";
import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import {
  type HeaderList,
  hasHeader,
  headerValues,
  listElements,
} from "@sluice/client/internal/http/header-list";
import {
  isSwitchedTo,
  requestUpgrade,
  type UpgradeRequest,
} from "@sluice/client/internal/http/upgrade/upgrade-request";
import type { UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import { withReusedReads } from "../../net/accepted-socket.ts";
import { upgradeEdit } from "../hop-by-hop.ts";
import { answerSwitched } from "./answer-switched.ts";
import { copyRefusal } from "./copy-refusal.ts";

/** The socket of an unanswered 'upgrade' event. It watches whether the client leaves. */
export interface WaitingClient {
  readonly socket: Duplex;
  /** Aborted when the client leaves. */
  readonly signal: AbortSignal;
  /** Stops watching. Returns the paused socket; `head` contains the client's early bytes. */
  release(): UpgradedConnection;
}

interface ForwardUpgradeOptions {
  readonly endpoint: UpstreamEndpoint;
  readonly method: string;
  /** The path and query for the upstream. */
  readonly path: string;
  /** The client's headers, unedited. */
  readonly headers: HeaderList;
  /**
   * A final edit, after hop-by-hop headers are removed and Connection is rebuilt: Host, X-Forwarded-*,
   * identity.
   */
  readonly editHeaders?: ((edit: HeaderEdit) => HeaderEdit) | undefined;
  /** The same for a switching response's headers. */
  readonly editResponseHeaders?: ((headers: HeaderList) => HeaderList) | undefined;
  /** Called with the size of each part of a refusal's body. */
  readonly onRefusedBytes?: ((bytes: number) => void) | undefined;
  /** Absent: `DEFAULT_ALLOWED_UPGRADES`. "any": any requested protocol except `h2c`. */
  readonly allowedProtocols?: readonly string[] | "any" | undefined;
  readonly dialTimeoutMs?: number | undefined;
  readonly responseHeaderTimeoutMs?: number | undefined;
  readonly maxResponseHeadBytes?: number | undefined;
  /**
   * See UpgradeRequest: a server may ignore `Upgrade` (RFC 9110 section 7.8). Not for HTTP/2 streams, on
   * which a 200 would switch.
   */
  readonly relayAnswersMs?: number | undefined;
  /**
   * Connects in another way than `dial`, e.g. through a proxy. The socket must behave like
   * `dial`'s.
   */
  readonly connect?: UpgradeRequest["connect"];
  readonly trace?: RequestTrace | undefined;
  /**
   * Carries the bytes once both sides have switched and the client has its 101. Both sockets arrive
   * paused: resume them.
   */
  carry(downstream: UpgradedConnection, upstream: UpgradedConnection): void;
}

/**
 * The protocols that may be switched to (kubernetes/kubernetes#72112). `h2c` would bypass every check
 * of requests.
 */
const DEFAULT_ALLOWED_UPGRADES: readonly string[] = ["websocket", "SPDY/3.1"];

/**
 * Forwards an upgrade unchanged. Only a 101 to the requested protocol connects the two sockets. A
 * refusal is copied, and both connections close; a redirect or success is an error (CVE-2018-1002105,
 * CVE-2020-8559). Resolves with the upstream's status once the bytes flow or the refusal is delivered.
 * Throws UpstreamError before the client has an answer, while its socket is still watched; "aborted"
 * if the client left.
 */
export async function forwardUpgrade(client: WaitingClient, options: ForwardUpgradeOptions): Promise<number> {
  const protocol = requestedProtocol(options);
  const edit = upgradeEdit(options.headers, protocol);
  const { endpoint, method, path, dialTimeoutMs, responseHeaderTimeoutMs, maxResponseHeadBytes } = options;
  const response = await requestUpgrade({
    endpoint,
    method,
    path,
    headers: (options.editHeaders?.(edit) ?? edit).lines(),
    dialTimeoutMs,
    responseHeaderTimeoutMs,
    maxResponseHeadBytes,
    relayAnswersMs: options.relayAnswersMs,
    connect: options.connect,
    trace: options.trace,
    signal: client.signal,
  });
  if (response.kind === "refused") {
    const { relayAnswersMs: deadlineMs, onRefusedBytes: onBytes } = options;
    await copyRefusal(response, client.release().socket, { deadlineMs, onBytes });
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

/** The one requested protocol. Lists are refused, because it could be disputed which element was chosen. */
function requestedProtocol({
  headers,
  allowedProtocols = DEFAULT_ALLOWED_UPGRADES,
}: ForwardUpgradeOptions): string {
  const hasLength = headerValues(headers, "content-length").some((value) => !/^0+$/.test(value));
  if (hasLength || hasHeader(headers, "transfer-encoding")) {
    throw new UpstreamError("invalid-request", "an upgrade request cannot have a body");
  }
  const offered = listElements(headerValues(headers, "upgrade"));
  // Ignores `h2c`: servers may ignore the offer, and since RFC 9113 all do.
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
