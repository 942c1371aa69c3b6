import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { formatQuantity } from "@sluice/client/internal/config/quantity";
import { bytes, count } from "../number-fields.ts";
import { section } from "../section-fields.ts";

/**
 * One read of a socket, one write to the other, and frame headers may exceed socketBufferBytes by
 * this much.
 */
const STALL_HEADROOM_BYTES = 128 * 1024;
const LEAST_BYTES_PER_SECOND = 16 * 1024;
const MILLION = { from: 1, to: 1_000_000 } as const;

const spdyLimits = table({
  maxControlFrameBytes: bytes("Payload of one control frame. Past it the session ends.", {
    default: "64Ki",
    from: "1Ki",
    to: 16_777_215,
  }),
  maxDataFrameBytes: bytes("Payload of one DATA frame. Past it the session ends.", {
    default: 16_777_215,
    from: "32Ki",
    to: 16_777_215,
  }),
  maxHeaderBlockBytes: bytes("One inflated header block. Past it the session ends before more is inflated.", {
    default: "64Ki",
    from: "1Ki",
    to: "16Mi",
  }),
  maxHeaders: count("Headers in one block. Past it the session ends.", {
    default: 100,
    from: 16,
    to: 10_000,
  }),
  maxSettingsEntries: count("Entries in one SETTINGS frame. Past it the session ends.", {
    default: 1_000,
    from: 1,
    to: 100_000,
  }),
  // An exec needs five.
  maxStreams: count(
    "Concurrent streams. Past it a stream gets RST_STREAM with REFUSED_STREAM; the session continues.",
    {
      default: 1_000,
      from: 8,
      to: 1_000_000,
    },
  ),
});

/**
 * Every limit on a size or count; `npm run docs` copies them to docs/limits.md. The ranges' lower
 * ends keep every kubectl working; their upper ends keep a typo from causing an outage.
 */
const fields = table({
  maxConcurrentSessions: count(
    "Concurrent sessions of one process, including those being set up. Past it: 429 with Retry-After.",
    { default: 10_000, ...MILLION },
  ),
  maxRequestHeaderBytes: bytes("Request line and headers of a client's request. Past it: 431.", {
    default: "1Mi",
    from: "8Ki",
    to: "16Mi",
  }),
  maxRequestHeaders: count(
    "Header lines of a client's request, on every listener except admin. Past it: 431.",
    {
      default: 200,
      from: 32,
      to: 10_000,
    },
  ),
  maxConcurrentRequests: count(
    "Concurrent requests of each listener except ingress; sessions, watches and followed logs do not count. Past it: 429 with Retry-After.",
    { default: 1_000, ...MILLION },
  ),
  maxConcurrentRequestsPerUser: count(
    "How many of these one user may have. While others have some, the limit is the same fraction of the rest. A caller counts by address until its user is known. Past it: 429, after up to 15 s for an address.",
    { default: 250, ...MILLION },
  ),
  maxLongRunningRequests: count(
    "Concurrent watches and followed logs of each listener except ingress. Past it the user with the most loses its newest to a user with fewer, or else: 429 with Retry-After.",
    { default: 10_000, ...MILLION },
  ),
  maxLongRunningRequestsPerUser: count(
    "How many of these one user may have. Past it: 429 with Retry-After.",
    {
      default: 1_000,
      ...MILLION,
    },
  ),
  maxConcurrentIngressRequests: count(
    "Requests that the ingress listener forwards concurrently. Past it: 503.",
    {
      default: 10_000,
      ...MILLION,
    },
  ),
  maxConcurrentIngressRequestsPerAddress: count(
    "How many of these one client address may have. While others have some, the limit is the same fraction of the rest. Behind `edge.trustedProxies` the client's address counts. Past it: 503.",
    { default: 2_500, ...MILLION },
  ),
  maxIngressMetricRoutes: count(
    "Pairs of Ingress and Service with their own metric series, oldest Ingresses first. Past it they count as `_other`.",
    { default: 500, from: 0, to: 100_000 },
  ),
  socketBufferBytes: bytes(
    "Read and write buffer of one client connection. Past it the session's other side is not read.",
    { default: "64Ki", from: "4Ki", to: "16Mi" },
  ),
  // Payload stops at socketBufferBytes plus one read, so only answers to PINGs reach this limit.
  stalledPeerBufferBytes: bytes(
    "Bytes that may wait for a peer that sends but does not read; at least `socketBufferBytes` and 128Ki. Past it the connection is closed.",
    { default: "256Ki", from: "4Ki", to: "64Mi" },
  ),
  maxUpgradeResponseHeadBytes: bytes(
    "Status line and headers of a node's response to an upgrade. Past it: 500, `header size limit exceeded`.",
    { default: "1Mi", from: "4Ki", to: "16Mi" },
  ),
  maxRefusalBodyBytes: bytes("The body of a node's refusal. Past it the rest is cut off.", {
    default: "64Ki",
    from: "1Ki",
    to: "16Mi",
  }),
  // client-go sends frames of up to 32 KiB and a channel byte; Go's x/net servers accept 32 MiB.
  maxWebSocketFrameBytes: bytes(
    "Declared payload of one WebSocket frame from a client. Past it: Close 1009, from the frame's header.",
    { default: "32Mi", from: "64Ki", to: "1Ti" },
  ),
  // Fragments use no memory, but a peer could waste CPU with frames without payload.
  maxWebSocketFragments: count("Frames in one WebSocket message. Past it: Close 1009.", {
    default: 10_000,
    from: 1,
    to: 2_147_483_647,
  }),
  maxConnectionsPerAddress: count(
    "Concurrent connections of one client address, or IPv6 /64; `edge.trustedProxies` are exempt. Past it a connection is closed without a response.",
    { default: 1_000, ...MILLION },
  ),
  maxHttp2Streams: count(
    "Concurrent streams of one HTTP/2 connection; a WebSocket or a watch uses one. Past it they wait at the client, or are refused.",
    {
      default: 250,
      from: 1,
      to: 10_000,
      flag: { name: "http2-max-streams-per-connection", read: http2StreamsOf },
    },
  ),
  maxConnectionBytesPerSecond: bytes(
    "Bytes per second of one session in each direction, with bursts of a tenth of a second; at least 16Ki; 0: unlimited. Past it reads are delayed.",
    { default: 0, from: 0, to: "1Ti", flag: "max-connection-bytes-per-sec" },
  ),
  // A service account's token takes about 1 KiB, one with many groups a few.
  maxBearerTokenBytes: bytes(
    "One bearer token, in a header or a subprotocol. Past it: 401, and the token is not read.",
    { default: "16Ki", from: "1Ki", to: "16Mi" },
  ),
  maxRememberedNodes: count(
    "Nodes whose learned state is kept. Past it the least recently used node is forgotten.",
    { default: 10_000, ...MILLION },
  ),
  maxRuntimeMessageBytes: bytes(
    "One response of a container runtime, such as the list of all containers. Past it: 500.",
    { default: "16Mi", from: "64Ki", to: "1Gi" },
  ),
  maxAdminConnections: count(
    "Concurrent connections of the admin listener; one address may have three quarters of them. Past it the oldest without a whole request is closed, or else the new one.",
    { default: 100, from: 1, to: 10_000 },
  ),
  maxPeers: count("Other replicas that this one queries. Past it addresses are left out, and logged.", {
    default: 64,
    from: 1,
    to: 1_000,
  }),
  maxPeerRelays: count(
    "Resumed sessions relayed to other replicas at once, and as many from them. Past it: 503.",
    { default: 1_000, ...MILLION },
  ),
  spdy: section("Limits of one SPDY connection.", spdyLimits),
});

export type Limits = ValueOf<typeof fields>;

export const limits = checked(fields, (values, section) => {
  const least = values.socketBufferBytes + STALL_HEADROOM_BYTES;
  if (values.stalledPeerBufferBytes < least) {
    // With a lower value, payload alone would end the session of a reader that is only slow.
    const message = `must be at least ${formatQuantity(least)}: socketBufferBytes and 128Ki`;
    section.problem("stalledPeerBufferBytes", message);
  }
  const rate = values.maxConnectionBytesPerSecond;
  if (rate !== 0 && rate < LEAST_BYTES_PER_SECOND) {
    // A chunk of 64 KiB must not delay heartbeats by more than their interval.
    const message = `must be 0, for no bound, or at least ${formatQuantity(LEAST_BYTES_PER_SECOND)}`;
    section.problem("maxConnectionBytesPerSecond", message);
  }
});

/** 0 keeps the default, as in kube-apiserver. */
function http2StreamsOf(text: string): number | undefined {
  if (!/^\d{1,10}$/.test(text)) {
    throw new RangeError(`must be a whole number, got ${JSON.stringify(text.slice(0, 80))}`);
  }
  return Number(text) || undefined;
}
