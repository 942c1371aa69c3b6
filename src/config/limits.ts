/**
 * Every size and count that the gateway bounds, under `limits` in the configuration file. Names end in their unit, or count
 * things. docs/limits.md says what happens past each one, and which test proves it.
 */
export interface Limits {
  /** Sessions at once in this process, those still being set up included. Past it: 429 with Retry-After. */
  readonly maxConcurrentSessions: number;
  /** Request line and headers of a client's request. Past it: 431. */
  readonly maxRequestHeaderBytes: number;
  /** Header lines of a client's request. Past it: 431. */
  readonly maxRequestHeaders: number;
  /** Plain requests in flight at each listener but the front door's, those without an end (watches, followed logs) not counted. Past it: 429. */
  readonly maxConcurrentRequests: number;
  /** Requests that the front door forwards at a time. Past it: 503. */
  readonly maxConcurrentIngressRequests: number;
  /** Read and write buffer of one client connection: what Node holds before it stops reading, or asks us to stop writing. */
  readonly socketBufferBytes: number;
  /**
   * What may wait for a peer that sends but does not read. Payload stops at socketBufferBytes and the read that passed it, so only
   * answers to its PINGs get here. Past it: the connection is given up.
   */
  readonly stalledPeerBufferBytes: number;
  /** Status line and headers of a node's answer to an upgrade. Past it: the client gets a 500. */
  readonly maxUpgradeResponseHeadBytes: number;
  /**
   * How much of a node's refusal is read for the Status that a client gets who would have been translated. The rest is cut off. A
   * refusal that passes through is streamed, so it needs no bound.
   */
  readonly maxRefusalBodyBytes: number;
  /** Declared payload of one WebSocket frame from a client; Go's x/net servers take 32 MiB. Past it: close 1009. */
  readonly maxWebSocketFrameBytes: number;
  /**
   * Frames of one WebSocket message. Payload is passed on as it arrives, so fragments hold no memory; the bound keeps a
   * peer from spending our time on frames that carry nothing. Past it: close 1009.
   */
  readonly maxWebSocketFragments: number;
  /** Connections of one client address at once, by /64 for IPv6; trusted proxies have no bound. Past it: closed without an answer. */
  readonly maxConnectionsPerAddress: number;
  /** Streams of one HTTP/2 connection at a time, a WebSocket or a watch each. More wait at the client, or are refused. */
  readonly maxHttp2Streams: number;
  /**
   * Bytes that one session may carry in a second, in each direction by itself; 0: as many as both sides take. kube-apiserver's
   * --max-connection-bytes-per-sec.
   */
  readonly maxConnectionBytesPerSecond: number;
  /** A bearer token of any kind, in a header or a subprotocol. Past it: 401, unread. */
  readonly maxBearerTokenBytes: number;
  /** Nodes of which something is remembered. Past it: the one that was not asked for longest is forgotten. */
  readonly maxRememberedNodes: number;
  /** One answer of a container runtime, such as the list of all containers; the kubelet takes 16 MiB. Past it: the request gets a 500. */
  readonly maxRuntimeMessageBytes: number;
  /** Connections to the admin listener at once. Past it: closed without an answer. */
  readonly maxAdminConnections: number;
  readonly spdy: SpdyConnectionLimits;
}

/** Bounds of one SPDY connection. */
export interface SpdyConnectionLimits {
  /** Payload of a control frame, the only kind that is assembled. Past it: the session ends. */
  readonly maxControlFrameBytes: number;
  /** Payload of a DATA frame, passed on in parts; SPDY's length field allows no more than the default. Past it: the session ends. */
  readonly maxDataFrameBytes: number;
  /** A header block after inflation. Past it: the session ends. */
  readonly maxHeaderBlockBytes: number;
  /** Headers of one block. Past it: the session ends. */
  readonly maxHeaders: number;
  /** Entries of one SETTINGS frame. Past it: the session ends. */
  readonly maxSettingsEntries: number;
  /** Streams open at once. Past it: the stream is refused with RST_STREAM REFUSED_STREAM, the session goes on. */
  readonly maxStreams: number;
}

export const defaultLimits: Limits = {
  maxConcurrentSessions: 10_000,
  maxRequestHeaderBytes: 64 * 1024,
  maxRequestHeaders: 200,
  maxConcurrentRequests: 1_000,
  maxConcurrentIngressRequests: 10_000,
  socketBufferBytes: 64 * 1024,
  stalledPeerBufferBytes: 256 * 1024,
  maxUpgradeResponseHeadBytes: 1024 * 1024,
  maxRefusalBodyBytes: 64 * 1024,
  maxWebSocketFrameBytes: 32 * 1024 * 1024,
  maxWebSocketFragments: 10_000,
  maxConnectionsPerAddress: 1_000,
  maxHttp2Streams: 250,
  maxConnectionBytesPerSecond: 0,
  maxBearerTokenBytes: 16 * 1024,
  maxRememberedNodes: 10_000,
  maxRuntimeMessageBytes: 16 * 1024 * 1024,
  maxAdminConnections: 100,
  spdy: {
    maxControlFrameBytes: 64 * 1024,
    maxDataFrameBytes: 2 ** 24 - 1,
    maxHeaderBlockBytes: 64 * 1024,
    maxHeaders: 100,
    maxSettingsEntries: 1_000,
    maxStreams: 1_000,
  },
};

/** What one read of a socket, one write of the other and their frame headers can add beyond socketBufferBytes. */
export const STALL_HEADROOM_BYTES = 128 * 1024;

/** Smallest and largest value that is accepted. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

type RangesOf<T> = { readonly [Name in keyof T]: T[Name] extends number ? Range : RangesOf<T[Name]> };

const KIB = 1024;
const MIB = 1024 * 1024;

/** Lower ends keep every kubectl working; upper ends keep a typing mistake from being an outage. */
export const limitRanges: RangesOf<Limits> = {
  maxConcurrentSessions: { min: 1, max: 1_000_000 },
  maxRequestHeaderBytes: { min: 8 * KIB, max: 16 * MIB },
  maxRequestHeaders: { min: 32, max: 10_000 },
  maxConcurrentRequests: { min: 1, max: 1_000_000 },
  maxConcurrentIngressRequests: { min: 1, max: 1_000_000 },
  socketBufferBytes: { min: 4 * KIB, max: 16 * MIB },
  stalledPeerBufferBytes: { min: 4 * KIB, max: 64 * MIB },
  maxUpgradeResponseHeadBytes: { min: 4 * KIB, max: 16 * MIB },
  maxRefusalBodyBytes: { min: 1 * KIB, max: 16 * MIB },
  // client-go sends up to 32 KiB and a channel byte in a frame.
  maxWebSocketFrameBytes: { min: 64 * KIB, max: 2 ** 40 },
  maxWebSocketFragments: { min: 1, max: 2 ** 31 - 1 },
  maxConnectionsPerAddress: { min: 1, max: 1_000_000 },
  maxHttp2Streams: { min: 1, max: 10_000 },
  maxConnectionBytesPerSecond: { min: 0, max: 2 ** 40 },
  // A service account's token is about 1 KiB, one with many groups a few.
  maxBearerTokenBytes: { min: 1 * KIB, max: 16 * MIB },
  maxRememberedNodes: { min: 1, max: 1_000_000 },
  maxRuntimeMessageBytes: { min: 64 * KIB, max: 1 << 30 },
  maxAdminConnections: { min: 1, max: 10_000 },
  spdy: {
    maxControlFrameBytes: { min: 1 * KIB, max: 2 ** 24 - 1 },
    maxDataFrameBytes: { min: 32 * KIB, max: 2 ** 24 - 1 },
    maxHeaderBlockBytes: { min: 1 * KIB, max: 16 * MIB },
    maxHeaders: { min: 16, max: 10_000 },
    maxSettingsEntries: { min: 1, max: 100_000 },
    // An exec needs five.
    maxStreams: { min: 8, max: 1_000_000 },
  },
};
