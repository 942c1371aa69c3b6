import { Duplex } from "node:stream";
import { gatherWrites } from "@sluice/client/internal/net/gathered-writes";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { containEvents } from "@sluice/client/internal/observability/faults";
import {
  closeCodeFor,
  endOf,
  faultOf,
  reasonOf,
  type SessionEnd,
} from "@sluice/client/internal/sessions/session-end";
import { clientEnd } from "@sluice/client/internal/sessions/websocket-connection";
import { forwardErrorText } from "@sluice/protocols/portforward";
import { type Feed, feed } from "../../../net/feed.ts";
import { goAwayStatusOf } from "../../decoders/open-forwards.ts";
import type { SessionLifecycle } from "../../lifecycle.ts";
import type { StreamingSession } from "../../session.ts";
import type { TunnelSideEnd } from "../tunnel-sides.ts";
import { ClientStreams } from "./client-streams.ts";
import type { ForwardedPair, PairOwner } from "./forwarded-pair.ts";
import { type NodeConnection, NodeConnections } from "./node-connections.ts";
import { SpdyPeer, type SpdyPeerOptions } from "./spdy-peer.ts";

/**
 * How long a node may take no data of one forwarded connection while others wait for it. Past it
 * that connection is reset.
 */
const FORWARD_STALL_MS = 30_000;
/** Data of one forwarded connection that its node has not taken. Past it the client is not read. */
const MAX_FORWARD_BUFFER_BYTES = 256 * 1024;

export interface SeparateForwardsOptions {
  readonly client: SpdyPeerOptions["carries"];
  readonly node: SpdyPeerOptions["carries"];
  readonly limits: Omit<SpdyPeerOptions, "carries">;
  /** Opens another session of the same client at the node. */
  readonly dial: (signal: AbortSignal) => Promise<UpgradedConnection>;
  /**
   * The client continues after an error on its error stream; kubectl would end the whole forward.
   */
  readonly mayReadErrors: boolean;
  /** Logs a text that the client does not get. */
  readonly withheld: (port: number, text: string) => void;
  /** Bytes that wait for a client that sends but does not read. */
  readonly maxQueuedBytes: number;
}

/** A sink that is never full, because data is copied and sent at once. */
const NO_SINK = (): Duplex => new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });

/**
 * Carries a port-forward in which each forwarded connection has its own connection to the node. The
 * client's SPDY ends here.
 */
export class SeparateForwards implements StreamingSession {
  readonly #life: SessionLifecycle;
  readonly #options: SeparateForwardsOptions;
  readonly #client: SpdyPeer;
  readonly #clientFeed: Feed;
  readonly #nodes: NodeConnections;
  readonly #streams: ClientStreams;
  readonly #pairs = new Set<ForwardedPair>();
  /** Connections to the node that take no more data, and since when. */
  readonly #full = new Map<NodeConnection, number>();
  #earlyBytes = 0;
  #isHeld = false;
  #isPaced = false;
  #lastPingMs: number;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    options: SeparateForwardsOptions,
    life: SessionLifecycle,
  ) {
    this.#life = life;
    this.#options = options;
    this.#lastPingMs = life.clock.now();
    this.#streams = new ClientStreams(life, this.#owner, {
      refused: (end) => this.#cut(end),
      paired: (pair) => {
        this.#pairs.add(pair);
        // The replies to both streams are sent first.
        queueMicrotask(() => void this.#connect(pair));
      },
    });
    const client = { ...options.limits, carries: options.client };
    this.#client = new SpdyPeer("client", downstream, client, life, {
      onStream: (stream) => this.#streams.opened(stream),
      onEnd: (end) => this.#clientEnded(end),
    });
    this.#nodes = new NodeConnections({
      dial: async (signal) => {
        const upstream = await options.dial(signal);
        const fail = (): void => life.cut("internal-error", "the gateway failed to carry the session");
        containEvents(upstream.socket, "session", fail);
        return upstream;
      },
      adopt: (socket) => this.#adopt(socket),
    });
    gatherWrites(downstream.socket);
    downstream.socket.on("drain", () => this.#regulate());
    life.pace("node").onHold(() => this.#regulate());
    this.#clientFeed = feed(
      downstream.socket,
      NO_SINK(),
      (chunk) => this.#fromClient(chunk),
      life.pace("client"),
    );
    this.#nodes.put(upstream);
    if (downstream.head.byteLength > 0) this.#fromClient(downstream.head);
  }

  tick(nowMs: number): void {
    this.#client.tick(nowMs);
    const isPingDue = nowMs - this.#lastPingMs >= this.#life.timeouts.spdyPingMs;
    if (isPingDue) this.#lastPingMs = nowMs;
    for (const { peer } of this.#nodes.open) {
      peer.tick(nowMs);
      if (isPingDue && !peer.socket.writableNeedDrain) peer.ping();
    }
    for (const [connection, sinceMs] of [...this.#full]) {
      if (nowMs - sinceMs < FORWARD_STALL_MS || this.#pairs.size < 2) continue;
      connection.peer.socket.destroy(new Error("it takes no data"));
    }
    this.#client.batch(() => this.#streams.tick(nowMs));
  }

  end(end: SessionEnd): void {
    this.#cut(end);
  }

  #fromClient(chunk: Uint8Array): void {
    if (this.#life.isOver) return;
    this.#client.receive(chunk);
    // Payload is stopped earlier, so only PING answers and refusals can fill the queue.
    const { socket } = this.#client;
    if (socket.writableLength > this.#options.maxQueuedBytes)
      socket.destroy(new Error("the peer sends but does not read"));
  }

  async #connect(pair: ForwardedPair): Promise<void> {
    try {
      const connection = await this.#nodes.take(pair);
      if (pair.isOver || this.#life.isOver) this.#nodes.give(connection, pair, true);
      else if (connection.peer.isOver)
        pair.fail(`error forwarding port ${pair.port}: lost connection to the node`);
      else pair.connect(connection);
    } catch (error) {
      const why = textOf(error);
      this.#client.batch(() => pair.fail(`error forwarding port ${pair.port}: ${why}`));
      // No connection is left, and the node accepts no other: the pod has gone.
      if (this.#nodes.size === 0) this.#cut(endOf("upstream-lost", `the node takes no connection: ${why}`));
    }
  }

  #adopt(upstream: UpgradedConnection): NodeConnection {
    const { socket, head } = upstream;
    const node = { ...this.#options.limits, carries: this.#options.node };
    const connection: NodeConnection = {
      users: new Set(),
      peer: new SpdyPeer("node", upstream, node, this.#life, {
        onEnd: ({ how }) => this.#nodeEnded(connection, how),
      }),
    };
    const pace = this.#life.pace("node");
    const receive = (chunk: Uint8Array): void => {
      this.#client.batch(() => connection.peer.receive(chunk));
      const waitMs = pace.spend(chunk.byteLength);
      if (waitMs > 0 && !this.#isPaced) {
        this.#isPaced = true;
        pace.wakeIn(waitMs, () => {
          this.#isPaced = false;
          this.#regulate();
        });
      }
      if (!this.#mayRead) this.#regulate();
    };
    socket.on("data", receive);
    socket.on("drain", () => {
      if (this.#full.delete(connection)) this.#regulate();
    });
    if (this.#mayRead) socket.resume();
    if (head.byteLength > 0) receive(head);
    return connection;
  }

  get #mayRead(): boolean {
    return !this.#isPaced && !this.#life.pace("node").isHeld && !this.#client.socket.writableNeedDrain;
  }

  /**
   * SPDY has no flow control here: a client that does not read pauses every connection, and a full
   * connection pauses the client.
   */
  #regulate(): void {
    for (const { peer } of this.#nodes.open) {
      if (this.#mayRead) peer.socket.resume();
      else peer.socket.pause();
    }
    const isHeld = this.#full.size > 0 || this.#earlyBytes > MAX_FORWARD_BUFFER_BYTES;
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    if (isHeld) this.#clientFeed.hold();
    else this.#clientFeed.release();
  }

  #nodeEnded(connection: NodeConnection, how: string): void {
    this.#nodes.lost(connection);
    this.#full.delete(connection);
    if (this.#life.isOver) return;
    this.#client.batch(() => {
      for (const user of [...connection.users]) user.connectionLost(how);
    });
    this.#regulate();
    // A node that accepts no other connection has lost the pod, and kubectl waits for that end.
    this.#nodes
      .keepOne()
      .catch((error: unknown) => this.#cut(endOf("upstream-lost", `${how}; ${textOf(error)}`)));
  }

  readonly #owner: PairOwner = {
    carries: (stream, from, part) => {
      const life = this.#life;
      if (life.isOver) return false;
      const refusal = life.observers.data(stream, from, part);
      if (refusal !== undefined) {
        this.#cut(refusal);
        return false;
      }
      if (from === "node") life.downstreamBytes += part.byteLength;
      else life.upstreamBytes += part.byteLength;
      return true;
    },
    ended: (stream, from) => this.#life.observers.streamEnd(stream, from),
    tell: (pair, text) => {
      if (this.#options.mayReadErrors) return true;
      this.#options.withheld(pair.port, text);
      return false;
    },
    wrote: (connection) => {
      if (connection.peer.socket.writableLength <= MAX_FORWARD_BUFFER_BYTES || this.#full.has(connection))
        return;
      this.#full.set(connection, this.#life.clock.now());
      this.#regulate();
    },
    early: (bytes) => {
      this.#earlyBytes += bytes;
      this.#regulate();
    },
    over: (pair, connection, endedWhole) => {
      this.#pairs.delete(pair);
      if (connection !== undefined) this.#nodes.give(connection, pair, endedWhole);
    },
  };

  #clientEnded({
    how,
    webSocket,
    isProtocolError,
  }: TunnelSideEnd & { readonly isProtocolError: boolean }): void {
    if (webSocket !== undefined) this.#over(clientEnd(webSocket));
    else if (isProtocolError)
      this.#over(faultOf("client", "protocol-error", `the client sent malformed SPDY: ${how}`));
    else this.#over(endOf("client-gone", how === "GOAWAY" ? "the client ended the session" : how));
  }

  /** Ends the session: its client gets the reason for each forwarded connection, then GOAWAY. */
  #cut(end: SessionEnd): void {
    if (this.#life.isOver) return;
    this.#client.batch(() => {
      for (const pair of [...this.#pairs]) pair.cut(forwardErrorText(pair.port, reasonOf(end)));
    });
    this.#over(end);
  }

  #over(end: SessionEnd): void {
    if (this.#life.isOver) return;
    this.#life.end(end, this.#client.socket, this.#client.hasSentEnd);
    this.#client.finish(closeCodeFor(end), reasonOf(end), goAwayStatusOf(end));
    this.#nodes.over();
  }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
