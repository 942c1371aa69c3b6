export type PortForwardStreamType = "error" | "data";

export interface PortForwardStreamHeaders {
  readonly streamType: PortForwardStreamType;
  readonly port: number;
  /** Both streams of a forwarded connection share it. */
  readonly requestId: string;
}

export type ParsedStreamHeaders =
  | { readonly ok: true; readonly value: PortForwardStreamHeaders }
  | { readonly ok: false; readonly reason: string };

/**
 * The headers of a client's SYN_STREAM; names are lower case on the wire. The server refuses with
 * an RST_STREAM, which carries no text.
 */
export function parseStreamHeaders(
  streamId: number,
  headers: ReadonlyMap<string, string>,
): ParsedStreamHeaders {
  const portText = headers.get("port") ?? "";
  if (portText === "") return { ok: false, reason: '"port" header is required' };
  const parsed = parsePort(portText);
  if (!parsed.ok) return parsed;

  const streamType = headers.get("streamtype") ?? "";
  if (streamType === "") return { ok: false, reason: '"streamType" header is required' };
  if (streamType !== "error" && streamType !== "data") {
    return { ok: false, reason: `invalid stream type ${JSON.stringify(streamType)}` };
  }
  const requestId = headers.get("requestid") || impliedRequestId(streamId, streamType);
  return { ok: true, value: { streamType, port: parsed.port, requestId } };
}

/** Old clients omit the header; they open the error stream and the data stream right after it. */
function impliedRequestId(streamId: number, streamType: PortForwardStreamType): string {
  return String(streamType === "error" ? streamId : streamId - 2);
}

/** Why a connection failed, for its error stream: worded as kubelets' reports begin. */
export function forwardErrorText(port: number, message: string): Uint8Array {
  return new TextEncoder().encode(`error forwarding port ${port}: ${message}`);
}

/** The headers a client sends for one of the two streams, in client-go's order. */
export function streamHeaders(value: PortForwardStreamHeaders): readonly (readonly [string, string])[] {
  return [
    ["streamtype", value.streamType],
    ["port", String(value.port)],
    ["requestid", value.requestId],
  ];
}

type ParsedPort =
  | { readonly ok: true; readonly port: number }
  | { readonly ok: false; readonly reason: string };

/** 1..65535 in decimal digits. A refusal quotes `quoted`, in the words of Go's strconv and of Kubernetes. */
function parsePort(text: string, quoted: string = text): ParsedPort {
  const problem = problemOf(text);
  if (problem !== undefined) {
    const cause = `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${problem}`;
    return { ok: false, reason: `unable to parse ${JSON.stringify(quoted)} as a port: ${cause}` };
  }
  const port = Number(text);
  if (port < 1) return { ok: false, reason: `port ${JSON.stringify(quoted)} must be > 0` };
  return { ok: true, port };
}

function problemOf(text: string): string | undefined {
  if (!/^[0-9]+$/.test(text)) return "invalid syntax";
  return Number(text) > 0xffff ? "value out of range" : undefined;
}

/** Subprotocols of the port-forward that does not use SPDY; an empty one (none offered) counts as v4. */
export const LEGACY_SUBPROTOCOLS = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"] as const;

export const PORT_PREFIX_BYTES = 2;
/**
 * Ports of one legacy WebSocket port-forward: a channel number is one byte, and a port uses two.
 * Past it: 400.
 */
const MAX_PORTS = 128;

export type ParsedPorts =
  | { readonly ok: true; readonly ports: readonly number[] }
  | { readonly ok: false; readonly reason: string };

/**
 * The ports of a legacy port-forward: all values of the query parameter, separated by commas. API
 * servers name it `ports` and kubelets `port`; errors always say "port".
 */
export function parsePortsQuery(values: readonly string[]): ParsedPorts {
  if (values.length === 0) return { ok: false, reason: 'query parameter "port" is required' };
  const ports: number[] = [];
  for (const value of values) {
    if (value === "") return { ok: false, reason: 'query parameter "port" cannot be empty' };
    for (const text of value.split(",")) {
      const parsed = parsePort(text, value);
      if (!parsed.ok) return parsed;
      ports.push(parsed.port);
    }
  }
  if (ports.length > MAX_PORTS)
    return { ok: false, reason: `at most ${MAX_PORTS} ports can be forwarded at once` };
  return { ok: true, ports };
}

export function dataChannelOf(portIndex: number): number {
  return portIndex * 2;
}

export function errorChannelOf(portIndex: number): number {
  return portIndex * 2 + 1;
}

/** The first message of each channel: its port, little endian. */
export function encodePortPrefix(port: number): Uint8Array {
  return Uint8Array.of(port & 0xff, port >> 8);
}

export function decodePortPrefix(prefix: Uint8Array): number {
  return (prefix[0] ?? 0) | ((prefix[1] ?? 0) << 8);
}

/** The SPDY protocol of port-forwarding, sent as X-Stream-Protocol-Version. */
export const PORT_FORWARD_PROTOCOL = "portforward.k8s.io";

const TUNNEL_PREFIX = "SPDY/3.1+";
const KUBERNETES_SUFFIX = ".k8s.io";
/** KEP-4006's text calls the tunnel this; the released code never did. */
const KEP_ALIAS = "v2.portforward.k8s.io";

export interface TunnelOffer {
  /** Exactly as the client wrote it; the response must repeat it. */
  readonly subprotocol: string;
  /** The protocol inside the tunnel. */
  readonly spdyProtocol: string;
}

/** The WebSocket subprotocols in `offered` that request a SPDY tunnel, in the client's order. */
export function tunnelOffers(offered: readonly string[]): TunnelOffer[] {
  const offers: TunnelOffer[] = [];
  for (const subprotocol of offered) {
    if (subprotocol === KEP_ALIAS) offers.push({ subprotocol, spdyProtocol: PORT_FORWARD_PROTOCOL });
    else if (isShippedTunnelName(subprotocol)) {
      offers.push({ subprotocol, spdyProtocol: subprotocol.slice(TUNNEL_PREFIX.length) });
    }
  }
  return offers;
}

export function tunnelSubprotocolOf(spdyProtocol: string): string {
  return TUNNEL_PREFIX + spdyProtocol;
}

/** Kubernetes' API servers and kubelets accept this name for a tunnel: `SPDY/3.1+`, a protocol, `.k8s.io`. */
export function isShippedTunnelName(subprotocol: string): boolean {
  return subprotocol.startsWith(TUNNEL_PREFIX) && subprotocol.endsWith(KUBERNETES_SUFFIX);
}

export const DEFAULT_PAIR_TIMEOUT_MS = 30_000;

/** The two streams of one forwarded connection. `port` is the data stream's. */
export interface StreamPair<Stream> {
  readonly requestId: string;
  readonly port: number;
  readonly error: Stream;
  readonly data: Stream;
}

/** A pair that still lacks its second stream. */
export interface PendingPair<Stream> {
  readonly requestId: string;
  readonly error: Stream | undefined;
  readonly data: Stream | undefined;
}

export type PairingResult<Stream> =
  | { readonly type: "waiting" }
  | { readonly type: "paired"; readonly pair: StreamPair<Stream> }
  /** Send `text` on the pending pair's error stream, if there is one. The new stream is rejected. */
  | { readonly type: "duplicate"; readonly text: string; readonly pending: PendingPair<Stream> };

interface Waiting<Stream> {
  readonly streams: Map<PortForwardStreamType, { stream: Stream; port: number }>;
  readonly sinceMs: number;
}

/**
 * Pairs the error and the data stream of each connection. A complete pair is forgotten, so its
 * request id may be reused. The session's limit of open streams bounds the pending pairs.
 */
export class StreamPairing<Stream> {
  readonly #timeoutMs: number;
  readonly #waiting = new Map<string, Waiting<Stream>>();

  constructor(pairTimeoutMs: number = DEFAULT_PAIR_TIMEOUT_MS) {
    this.#timeoutMs = pairTimeoutMs;
  }

  add(headers: PortForwardStreamHeaders, stream: Stream, nowMs: number): PairingResult<Stream> {
    const { requestId, streamType, port } = headers;
    const waiting = this.#waiting.get(requestId) ?? { streams: new Map(), sinceMs: nowMs };
    if (waiting.streams.has(streamType)) {
      const text = `error processing stream for request ${requestId}: ${streamType} stream already assigned`;
      return { type: "duplicate", text, pending: pendingOf(requestId, waiting) };
    }
    waiting.streams.set(streamType, { stream, port });
    const error = waiting.streams.get("error");
    const data = waiting.streams.get("data");
    if (error === undefined || data === undefined) {
      this.#waiting.set(requestId, waiting);
      return { type: "waiting" };
    }
    this.#waiting.delete(requestId);
    return { type: "paired", pair: { requestId, port: data.port, error: error.stream, data: data.stream } };
  }

  /** Forgets a stream that ended while it waited. */
  remove(stream: Stream): void {
    for (const [requestId, { streams }] of this.#waiting) {
      for (const [streamType, entry] of streams) if (entry.stream === stream) streams.delete(streamType);
      if (streams.size === 0) this.#waiting.delete(requestId);
    }
  }

  /**
   * Removes the pairs that have waited too long; send `timeoutText` on their error stream, if there
   * is one.
   */
  expire(nowMs: number): PendingPair<Stream>[] {
    const expired: PendingPair<Stream>[] = [];
    for (const [requestId, waiting] of this.#waiting) {
      if (nowMs - waiting.sinceMs < this.#timeoutMs) continue;
      this.#waiting.delete(requestId);
      expired.push(pendingOf(requestId, waiting));
    }
    return expired;
  }

  get pendingCount(): number {
    return this.#waiting.size;
  }
}

/** `connection` names the connection in the text; Kubernetes prints a memory address there. */
export function timeoutText(connection: string, requestId: string): string {
  return `(conn=${connection}, request=${requestId}) timed out waiting for streams`;
}

function pendingOf<Stream>(requestId: string, waiting: Waiting<Stream>): PendingPair<Stream> {
  return {
    requestId,
    error: waiting.streams.get("error")?.stream,
    data: waiting.streams.get("data")?.stream,
  };
}
