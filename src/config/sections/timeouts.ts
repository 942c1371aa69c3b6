import { table, type ValueOf } from "@sluice/client/internal/config/field";
import { duration } from "../number-fields.ts";

/** Node.js timers wait at most 2^31 - 1 ms; a longer one fires at once. */
export const LONGEST_WAIT = "576h";
const UPSTREAM_WAIT = { from: "100ms", to: LONGEST_WAIT } as const;
const PATIENCE = { from: "1s", to: LONGEST_WAIT } as const;
/**
 * Common load balancers cut a connection after 60 s of silence; heartbeats take half of that at
 * most.
 */
const HEARTBEAT = { from: "1s", to: "30s" } as const;

/** Every duration that the gateway waits; `npm run docs` copies them to docs/limits.md. */
export const timeouts = table({
  idle: duration(
    "How long a session, or an HTTP response without a declared length, may carry no payload; heartbeats do not count. Past it the session ends with a Status.",
    { default: "4h", ...PATIENCE },
  ),
  streamCreation: duration(
    "How long a node may take to accept an exec's or attach's streams, and a bridged client to open them. Past it the session ends with a Status.",
    {
      default: "30s",
      ...PATIENCE,
    },
  ),
  webSocketPing: duration("Time between WebSocket PINGs to a client, or to a silent node.", {
    default: "20s",
    ...HEARTBEAT,
  }),
  // client-go stops reading after 61 s without a PONG, and its own PINGs wait behind a stalled
  // terminal.
  unsolicitedPong: duration(
    "Time between unsolicited WebSocket PONGs to a client; client-go waits 61 s for one.",
    {
      default: "15s",
      ...HEARTBEAT,
    },
  ),
  spdyPing: duration(
    "Time between SPDY PINGs to a silent node, or to the SPDY client of a bridged command.",
    { default: "10s", ...HEARTBEAT },
  ),
  dial: duration(
    "Connecting to an upstream: name lookup, TCP and TLS. Past it: 500, `error dialing backend`.",
    {
      default: "10s",
      ...UPSTREAM_WAIT,
    },
  ),
  peerDial: duration("Connecting to another replica, and its response to a resumption. Past it: 503.", {
    default: "2s",
    ...UPSTREAM_WAIT,
  }),
  peerList: duration(
    "One page of another replica's list of sessions, or its answer about recordings, from the dial to the last byte. Past it the list says that the replica is missing.",
    {
      default: "1s",
      ...UPSTREAM_WAIT,
    },
  ),
  upgradeResponse: duration(
    "An upstream's response to an upgrade, from the request's last byte to the end of the response's head; a refused log's body has as long again. Past it: 500.",
    { default: "30s", ...UPSTREAM_WAIT },
  ),
  // kube-apiserver itself ends the request after 60 s (--request-timeout).
  apiServerRequest: duration(
    "A request to an API server, to the last byte of its response; watches, logs and proxied requests are exempt. Past it: 504, 408 if the client's body is missing, or the response is cut.",
    { default: "90s", ...UPSTREAM_WAIT },
  ),
  requestBody: duration(
    "Silence within a forwarded request body of declared length, or the whole body of a review. Past it: 408.",
    { default: "1m", ...UPSTREAM_WAIT },
  ),
  streamIdle: duration(
    "How long a side of an HTTP exchange may owe bytes, or not read those that wait for it (Envoy's stream idle timeout). Past it: 408 or 504 before the response, else the exchange is cut.",
    { default: "5m", ...UPSTREAM_WAIT },
  ),
  nodeMemory: duration("How long the learned state of an unused node is kept. Past it, it is dropped.", {
    default: "1h",
    ...PATIENCE,
  }),
  runtimeCall: duration(
    "A container runtime's response to a call that waits for no container; commands of `/run` are exempt. Past it: 500.",
    {
      default: "30s",
      ...UPSTREAM_WAIT,
    },
  ),
  keepAlive: duration(
    "How long a client's connection may be idle; longer than the 60 s of common load balancers. Past it, it is closed.",
    { default: "75s", ...PATIENCE },
  ),
  handshake: duration(
    "A client's request head, from its first byte; over HTTP/2 the preface, too, and without a stream any frame. Past it, and up to 5 s more: 408, or GOAWAY, and the connection is closed.",
    { default: "30s", ...UPSTREAM_WAIT },
  ),
  lingerIdle: duration(
    "How long a peer may neither send, read nor close after its session's end or its upgrade's refusal. Past it, it is disconnected.",
    { default: "1m", ...UPSTREAM_WAIT },
  ),
  lingerMax: duration(
    "How long a peer may stay connected after its session's end, again for each 1 MiB that it reads. Past it, it is disconnected.",
    { default: "10m", ...UPSTREAM_WAIT },
  ),
  shutdownDelay: duration(
    "How long everything is still served after SIGTERM while readiness fails. Past it the grace period begins.",
    { default: "0s", from: "0s", to: LONGEST_WAIT },
  ),
  shutdownGracePeriod: duration(
    "How long sessions and requests may take to finish after SIGTERM; watches and followed logs end at once. Past it they are ended as failures.",
    {
      default: "30s",
      from: "0s",
      to: LONGEST_WAIT,
    },
  ),
});

/** In milliseconds. */
export type Timeouts = ValueOf<typeof timeouts>;
