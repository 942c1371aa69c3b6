import { createHash } from "node:crypto";
import {
  ACCEPT_GUID,
  checkServerHandshake,
  encodeSwitchingProtocols,
  firstHeaderValue,
  type HandshakeRequest,
  type HeaderLines,
  headerValues,
  negotiateSubprotocol,
  tokenList,
} from "@sluice/protocols/websocket";
import { httpError, type Refusal } from "./refusal.ts";

const PROTOCOL_HEADER = "X-Stream-Protocol-Version";

type SpdyHandshake =
  | { readonly ok: true; readonly protocol: string; readonly switching: string }
  | { readonly ok: false; readonly refusal: Refusal };

interface SpdyHandshakeOptions {
  /** The protocols in the order in which a refusal lists them. */
  readonly accepted: readonly string[];
  /**
   * Exec and attach servers write a refused negotiation twice, because both the handshake and its
   * caller do.
   */
  readonly isSaidTwice: boolean;
}

/** k8s.io/streaming's checks in their order: negotiation, then the upgrade headers. The client's first preference wins. */
export function checkSpdyHandshake(lines: HeaderLines, options: SpdyHandshakeOptions): SpdyHandshake {
  const values = headerValues(lines, PROTOCOL_HEADER);
  const offered = tokenList(values);
  if (offered.length === 0) {
    const problem =
      values.length === 0
        ? `does not exist in request with ${goHeaderCount(lines)} headers`
        : `contains [${values.join(" ")}], but no valid protocols`;
    return refused(400, `unable to upgrade: header ${PROTOCOL_HEADER} ${problem}`, options, []);
  }
  const protocol = offered.find((name) => options.accepted.includes(name));
  if (protocol === undefined) {
    const reason = `client supports [${offered.join(" ")}], server accepts [${options.accepted.join(" ")}]`;
    const accepted = options.accepted.map((name) => ["X-Accepted-Stream-Protocol-Versions", name] as const);
    return refused(403, `unable to upgrade: unable to negotiate protocol: ${reason}`, options, accepted);
  }
  if (!hasUpgradeHeaders(lines)) {
    const text = `unable to upgrade: missing upgrade headers in request: ${goHeaderDump(lines)}`;
    return { ok: false, refusal: httpError(400, text, [[PROTOCOL_HEADER, protocol]]) };
  }
  return { ok: true, protocol, switching: encodeSpdySwitch(protocol) };
}

/** Tests for substrings of the first lines, as the reference does. */
function hasUpgradeHeaders(lines: HeaderLines): boolean {
  const has = (name: string, wanted: string): boolean =>
    firstHeaderValue(lines, name).toLowerCase().includes(wanted);
  return has("Connection", "upgrade") && has("Upgrade", "spdy/3.1");
}

function refused(
  status: number,
  line: string,
  { isSaidTwice }: SpdyHandshakeOptions,
  headers: readonly (readonly [string, string])[],
): SpdyHandshake {
  return { ok: false, refusal: httpError(status, isSaidTwice ? `${line}\n${line}` : line, headers) };
}

function encodeSpdySwitch(protocol: string): string {
  return [
    "HTTP/1.1 101 Switching Protocols",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    `${PROTOCOL_HEADER}: ${protocol}`,
    `Date: ${new Date().toUTCString()}`,
    "\r\n",
  ].join("\r\n");
}

/** Header lines as Go's http.Header stores them: canonical names, values in order, no Host. */
function goHeader(lines: HeaderLines): Map<string, string[]> {
  const header = new Map<string, string[]>();
  for (let at = 0; at + 1 < lines.length; at += 2) {
    const name = canonicalName(lines[at] ?? "");
    if (name !== "Host") header.set(name, [...(header.get(name) ?? []), lines[at + 1] ?? ""]);
  }
  return header;
}

function goHeaderCount(lines: HeaderLines): number {
  return goHeader(lines).size;
}

/** Go's %#v of a header. */
function goHeaderDump(lines: HeaderLines): string {
  const entries = [...goHeader(lines)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, values]) =>
        `${JSON.stringify(name)}:[]string{${values.map((value) => JSON.stringify(value)).join(", ")}}`,
    );
  return `http.Header{${entries.join(", ")}}`;
}

function canonicalName(name: string): string {
  return name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}

type WebSocketHandshake =
  | { readonly ok: true; readonly subprotocol: string; readonly switching: Uint8Array }
  | { readonly ok: false; readonly refusal: Refusal };

/** golang.org/x/net/websocket's answers, used by a kubelet's translator and by CRI servers. */
export function checkWebSocketHandshake(
  request: HandshakeRequest,
  accepted: readonly string[],
): WebSocketHandshake {
  const handshake = checkServerHandshake(request);
  if (!handshake.ok) return { ok: false, refusal: { ...handshake, isBare: true } };
  const subprotocol = negotiateSubprotocol(handshake.protocols, accepted);
  if (subprotocol === undefined) {
    return { ok: false, refusal: { status: 403, headers: [], body: "", isBare: true } };
  }
  return { ok: true, subprotocol, switching: switchingProtocols(handshake.key, subprotocol) };
}

/** gorilla/websocket's answers, used by a kubelet's tunnel. */
export function checkTunnelHandshake(request: HandshakeRequest, subprotocol: string): WebSocketHandshake {
  const handshake = checkServerHandshake(request);
  if (handshake.ok)
    return { ok: true, subprotocol, switching: switchingProtocols(handshake.key, subprotocol) };
  const line = handshake.status === 405 ? "Method Not Allowed" : "Bad Request";
  return { ok: false, refusal: httpError(handshake.status, line, [["Sec-Websocket-Version", "13"]]) };
}

function switchingProtocols(key: string, subprotocol: string): Uint8Array {
  const accept = createHash("sha1")
    .update(key + ACCEPT_GUID)
    .digest("base64");
  if (subprotocol !== "") return encodeSwitchingProtocols(accept, subprotocol);
  // x/net writes the line even if it is empty. Strict clients refuse that; gateways must survive
  // it.
  const head = Buffer.from(encodeSwitchingProtocols(accept, undefined)).toString("latin1");
  return Buffer.from(head.replace(/\r\n$/, "Sec-WebSocket-Protocol: \r\n\r\n"), "latin1");
}
