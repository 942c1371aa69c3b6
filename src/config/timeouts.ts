import type { Range } from "./limits.ts";

/**
 * Every duration that the gateway waits, in milliseconds. In the configuration file they stand under `timeouts`, without the
 * unit in the name and in Go's syntax: `idle: 4h`.
 */
export interface Timeouts {
  /** A session in which no payload moves for this long ends. Heartbeats do not count, as in kube-apiserver. */
  readonly idleMs: number;
  /** A node has this long to accept the streams of an exec or attach. */
  readonly streamCreationMs: number;
  /** Between our WebSocket PINGs to a client, which keep load balancers from cutting a silent session. */
  readonly webSocketPingMs: number;
  /**
   * Between PONGs that nobody asked for. client-go reads for 61 s at most without a PONG, and its own PINGs wait behind a
   * stalled terminal.
   */
  readonly unsolicitedPongMs: number;
  /** Between our SPDY PINGs to a node. */
  readonly spdyPingMs: number;
  /** Reaching an upstream: name lookup, TCP and TLS. */
  readonly dialMs: number;
  /** An upstream's answer to an upgrade, from the last byte of the request to the end of the answer's head. */
  readonly upgradeResponseMs: number;
  /**
   * An API server's response head, from the last byte of a forwarded request. kube-apiserver answers 504 by itself after 60 s
   * (`--request-timeout`). Its long-running requests (watch, log, proxy) have no such time there or here.
   */
  readonly apiServerResponseMs: number;
  /** A request's body to an API: silence of a body of declared length that is forwarded, or the whole body of a review. */
  readonly requestBodyMs: number;
  /** A side of an HTTP exchange that owes bytes, or does not take those that wait for it (Envoy's stream idle timeout). */
  readonly streamIdleMs: number;
  /** What was learned of a node that nobody asks for is forgotten after this long. */
  readonly nodeMemoryMs: number;
  /** A container runtime's answer to a call that waits for no container. */
  readonly runtimeCallMs: number;
  /** A client's connection without a request: longer than the 60 s after which common load balancers close their side. */
  readonly keepAliveMs: number;
  /** A client's request head, from its first byte. */
  readonly handshakeMs: number;
  /** After the end of a session: a peer that neither sends nor closes for this long is let go. */
  readonly lingerIdleMs: number;
  /** After the end of a session: a peer that keeps sending and never closes is let go after this long. */
  readonly lingerMaxMs: number;
  /** After SIGTERM, sessions have this long to finish before they are ended. */
  readonly shutdownGracePeriodMs: number;
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

export const defaultTimeouts: Timeouts = {
  idleMs: 4 * HOUR,
  streamCreationMs: 30 * SECOND,
  webSocketPingMs: 20 * SECOND,
  unsolicitedPongMs: 15 * SECOND,
  spdyPingMs: 10 * SECOND,
  dialMs: 10 * SECOND,
  upgradeResponseMs: 30 * SECOND,
  apiServerResponseMs: 90 * SECOND,
  requestBodyMs: MINUTE,
  streamIdleMs: 5 * MINUTE,
  nodeMemoryMs: HOUR,
  runtimeCallMs: 30 * SECOND,
  keepAliveMs: 75 * SECOND,
  handshakeMs: 30 * SECOND,
  lingerIdleMs: 60 * SECOND,
  lingerMaxMs: 10 * MINUTE,
  shutdownGracePeriodMs: 30 * SECOND,
};

/** Timers of Node.js wait 2^31 - 1 ms at most and fire at once when asked for more. */
const LONGEST = 24 * 24 * HOUR;
const UPSTREAM_WAIT: Range = { min: 100, max: LONGEST };
/** Common load balancers cut at 60 s of silence, so heartbeats stay at half of that. */
const HEARTBEAT: Range = { min: 1 * SECOND, max: 30 * SECOND };

export const timeoutRanges: { readonly [Name in keyof Timeouts]: Range } = {
  idleMs: { min: 1 * SECOND, max: LONGEST },
  streamCreationMs: { min: 1 * SECOND, max: LONGEST },
  webSocketPingMs: HEARTBEAT,
  unsolicitedPongMs: HEARTBEAT,
  spdyPingMs: HEARTBEAT,
  dialMs: UPSTREAM_WAIT,
  upgradeResponseMs: UPSTREAM_WAIT,
  apiServerResponseMs: UPSTREAM_WAIT,
  requestBodyMs: UPSTREAM_WAIT,
  streamIdleMs: UPSTREAM_WAIT,
  nodeMemoryMs: { min: 1 * SECOND, max: LONGEST },
  runtimeCallMs: UPSTREAM_WAIT,
  keepAliveMs: { min: 1 * SECOND, max: LONGEST },
  handshakeMs: UPSTREAM_WAIT,
  lingerIdleMs: { min: 100, max: LONGEST },
  lingerMaxMs: { min: 100, max: LONGEST },
  shutdownGracePeriodMs: { min: 0, max: LONGEST },
};
