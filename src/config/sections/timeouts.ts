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

/** Every duration that the gateway waits. docs/limits.md has their effects and tests. */
export const timeouts = table({
  idle: duration(
    "A session without payload for this long ends; heartbeats do not count, as in kube-apiserver. So does an HTTP response of no declared length.",
    { default: "4h", ...PATIENCE },
  ),
  streamCreation: duration("A node has this long to accept the streams of an exec or attach.", {
    default: "30s",
    ...PATIENCE,
  }),
  webSocketPing: duration(
    "Between WebSocket PINGs to a client, which keep load balancers from cutting a silent session.",
    { default: "20s", ...HEARTBEAT },
  ),
  // client-go stops reading after 61 s without a PONG, and its own PINGs wait behind a stalled
  // terminal.
  unsolicitedPong: duration("Between unsolicited WebSocket PONGs to a client.", {
    default: "15s",
    ...HEARTBEAT,
  }),
  spdyPing: duration("Between SPDY PINGs to a node.", { default: "10s", ...HEARTBEAT }),
  dial: duration("Connecting to an upstream: name lookup, TCP and TLS.", {
    default: "10s",
    ...UPSTREAM_WAIT,
  }),
  peerDial: duration("Connecting to another replica, and its response to a resumption.", {
    default: "2s",
    ...UPSTREAM_WAIT,
  }),
  peerList: duration("One page of another replica's list of sessions, from the dial to its last byte.", {
    default: "1s",
    ...UPSTREAM_WAIT,
  }),
  upgradeResponse: duration(
    "An upstream's response to an upgrade, from the last byte of the request to the end of the response's head.",
    { default: "30s", ...UPSTREAM_WAIT },
  ),
  // kube-apiserver itself ends it after 60 s (--request-timeout).
  apiServerRequest: duration(
    "A request to an API server, to the last byte of its response. Watches, logs and proxied requests have no such time.",
    { default: "90s", ...UPSTREAM_WAIT },
  ),
  requestBody: duration(
    "A request's body to an API: silence within a forwarded body of declared length, or the whole body of a review.",
    { default: "1m", ...UPSTREAM_WAIT },
  ),
  streamIdle: duration(
    "A side of an HTTP exchange that owes bytes, or does not take those that wait for it (Envoy's stream idle timeout).",
    { default: "5m", ...UPSTREAM_WAIT },
  ),
  nodeMemory: duration("Learned state of a node without requests is dropped after this long.", {
    default: "1h",
    ...PATIENCE,
  }),
  runtimeCall: duration("A container runtime's response to a call that waits for no container.", {
    default: "30s",
    ...UPSTREAM_WAIT,
  }),
  keepAlive: duration(
    "A client's connection without a request: longer than the 60 s after which common load balancers close their side.",
    { default: "75s", ...PATIENCE },
  ),
  handshake: duration("A client's request head, from its first byte.", { default: "30s", ...UPSTREAM_WAIT }),
  lingerIdle: duration(
    "After the end of a session: a peer that neither sends nor closes for this long is disconnected.",
    { default: "1m", ...UPSTREAM_WAIT },
  ),
  lingerMax: duration(
    "After the end of a session: a peer that keeps sending and never closes is disconnected after this long.",
    { default: "10m", ...UPSTREAM_WAIT },
  ),
  shutdownDelay: duration(
    "After SIGTERM, everything is still served for this long, so that load balancers notice that readiness is gone.",
    { default: "0s", from: "0s", to: LONGEST_WAIT },
  ),
  shutdownGracePeriod: duration("After SIGTERM, sessions have this long to finish before they are ended.", {
    default: "30s",
    from: "0s",
    to: LONGEST_WAIT,
  }),
});

/** In milliseconds. */
export type Timeouts = ValueOf<typeof timeouts>;
