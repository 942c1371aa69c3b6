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
  maxControlFrameBytes: bytes(
    "Payload of a control frame, the only kind that is assembled. Past it the session ends.",
    { default: "64Ki", from: "1Ki", to: 16_777_215 },
  ),
  maxDataFrameBytes: bytes("Payload of a DATA frame, passed on in parts. Past it the session ends.", {
    default: 16_777_215,
    from: "32Ki",
    to: 16_777_215,
  }),
  maxHeaderBlockBytes: bytes("A header block after inflation. Past it the session ends.", {
    default: "64Ki",
    from: "1Ki",
    to: "16Mi",
  }),
  maxHeaders: count("Headers of one block. Past it the session ends.", {
    default: 100,
    from: 16,
    to: 10_000,
  }),
  maxSettingsEntries: count("Entries of one SETTINGS frame. Past it the session ends.", {
    default: 1_000,
    from: 1,
    to: 100_000,
  }),
  // An exec needs five.
  maxStreams: count("Streams open at once. Past it a stream gets RST_STREAM with REFUSED_STREAM.", {
    default: 1_000,
    from: 8,
    to: 1_000_000,
  }),
});

/**
 * Every size and count with a bound; docs/limits.md has their effects and tests. The ranges' lower
 * ends keep every kubectl working; their upper ends keep a typing mistake from causing an outage.
 */
const fields = table({
  maxConcurrentSessions: count(
    "Sessions at once in one process, those being set up included. Past it: 429 with Retry-After.",
    { default: 10_000, ...MILLION },
  ),
  maxRequestHeaderBytes: bytes("Request line and headers of a client's request. Past it: 431.", {
    default: "1Mi",
    from: "8Ki",
    to: "16Mi",
  }),
  maxRequestHeaders: count("Header lines of a client's request. Past it: 431.", {
    default: 200,
    from: 32,
    to: 10_000,
  }),
  maxConcurrentRequests: count(
    "Plain requests in flight at each listener but the ingress listener, watches and followed logs not counted. Past it: 429.",
    { default: 1_000, ...MILLION },
  ),
  maxConcurrentRequestsPerUser: count(
    "Of these, those of one user while the others are free; before its user is known, those of one address. Of what others leave it may take the same part. Past it: 429.",
    { default: 250, ...MILLION },
  ),
  maxLongRunningRequests: count(
    "Watches and followed logs in flight at each listener but the ingress listener. Past it the user with the most loses its newest to one with fewer: others get 429.",
    { default: 10_000, ...MILLION },
  ),
  maxLongRunningRequestsPerUser: count("Of these, those of one user. Past it: 429.", {
    default: 1_000,
    ...MILLION,
  }),
  maxConcurrentIngressRequests: count(
    "Requests that the ingress listener forwards at a time. Past it: 503.",
    {
      default: 10_000,
      ...MILLION,
    },
  ),
  maxConcurrentIngressRequestsPerAddress: count(
    "Of these, those of one address while the others are free, and the same part of what others leave; edge.trustedProxies name the addresses of their clients. Past it: 503.",
    { default: 2_500, ...MILLION },
  ),
  maxIngressMetricRoutes: count(
    "Pairs of Ingress and Service with series of their own in the metrics, those of the oldest Ingresses. Past it: counted together, as `_other`.",
    { default: 500, from: 0, to: 100_000 },
  ),
  socketBufferBytes: bytes(
    "Read and write buffer of one client connection. Past it the other side of the session is not read until the peer has.",
    { default: "64Ki", from: "4Ki", to: "16Mi" },
  ),
  // Payload stops at socketBufferBytes plus one read, so only answers to PINGs reach this limit.
  stalledPeerBufferBytes: bytes(
    "What may wait for a peer that sends but does not read: at least socketBufferBytes and 128Ki. Past it the connection is closed.",
    { default: "256Ki", from: "4Ki", to: "64Mi" },
  ),
  maxUpgradeResponseHeadBytes: bytes(
    "Status line and headers of a node's response to an upgrade. Past it the client gets a 500.",
    { default: "1Mi", from: "4Ki", to: "16Mi" },
  ),
  maxRefusalBodyBytes: bytes(
    "The part of a node's refusal that is read for the Status of a translated session. The rest is cut off.",
    { default: "64Ki", from: "1Ki", to: "16Mi" },
  ),
  // client-go sends frames of up to 32 KiB and a channel byte; Go's x/net servers accept 32 MiB.
  maxWebSocketFrameBytes: bytes(
    "Declared payload of one WebSocket frame from a client. Past it: close 1009.",
    { default: "32Mi", from: "64Ki", to: "1Ti" },
  ),
  // Fragments use no memory, but a peer could waste CPU with frames without payload.
  maxWebSocketFragments: count("Frames of one WebSocket message. Past it: close 1009.", {
    default: 10_000,
    from: 1,
    to: 2_147_483_647,
  }),
  maxConnectionsPerAddress: count(
    "Connections of one client address at once, by /64 for IPv6; trusted proxies have no bound. Past it a connection is closed without a response.",
    { default: 1_000, ...MILLION },
  ),
  maxHttp2Streams: count(
    "Streams of one HTTP/2 connection at a time, a WebSocket or a watch each. More wait at the client, or are refused.",
    {
      default: 250,
      from: 1,
      to: 10_000,
      flag: { name: "http2-max-streams-per-connection", read: http2StreamsOf },
    },
  ),
  maxConnectionBytesPerSecond: bytes(
    "Bytes that one session may carry in a second, in each direction separately: at least 16Ki; 0 is no bound.",
    { default: 0, from: 0, to: "1Ti", flag: "max-connection-bytes-per-sec" },
  ),
  // A service account's token takes about 1 KiB, one with many groups a few.
  maxBearerTokenBytes: bytes(
    "A bearer token, in a header or a subprotocol. Past it: 401, and the token is not read.",
    { default: "16Ki", from: "1Ki", to: "16Mi" },
  ),
  maxRememberedNodes: count(
    "Nodes with learned state. Past it that of the least recently used node is dropped.",
    { default: 10_000, ...MILLION },
  ),
  maxRuntimeMessageBytes: bytes(
    "One response of a container runtime, such as the list of all containers; the kubelet takes 16 MiB. Past it the request gets a 500.",
    { default: "16Mi", from: "64Ki", to: "1Gi" },
  ),
  maxAdminConnections: count(
    "Connections to the admin listener at once. Past it a connection is closed without a response.",
    { default: 100, from: 1, to: 10_000 },
  ),
  maxPeers: count("Other replicas that are asked. Further addresses are left out, and logged.", {
    default: 64,
    from: 1,
    to: 1_000,
  }),
  maxPeerRelays: count(
    "Resumed sessions that are relayed to other replicas at once, and as many from them. Past it: 503.",
    { default: 1_000, ...MILLION },
  ),
  spdy: section("Bounds of one SPDY connection.", spdyLimits),
});

export type Limits = ValueOf<typeof fields>;

export const limits = checked(fields, (values, section) => {
  const least = values.socketBufferBytes + STALL_HEADROOM_BYTES;
  if (values.stalledPeerBufferBytes < least) {
    // With a lower value, payload alone would end the session of a merely slow reader.
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
