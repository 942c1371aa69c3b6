import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import type { SpdyPeer } from "./spdy-peer.ts";

/**
 * Connections of one port-forward to its node, including the one in reserve. Past it forwarded
 * connections share them.
 */
const MAX_FORWARD_CONNECTIONS = 64;
/**
 * Unused connections of one port-forward to its node, kept for the next forwarded connections: a
 * browser opens six at once. Past it they are closed.
 */
const MAX_UNUSED_FORWARD_CONNECTIONS = 8;

/** A forwarded connection, as its connection to the node sees it. */
export interface ConnectionUser {
  connectionLost(how: string): void;
}

/** One connection to the node, and the forwarded connections that it carries. */
export interface NodeConnection {
  readonly peer: SpdyPeer;
  readonly users: Set<ConnectionUser>;
}

interface Ways {
  dial(signal: AbortSignal): Promise<UpgradedConnection>;
  adopt(upstream: UpgradedConnection): NodeConnection;
}

/**
 * The connections of one port-forward to its node: one for each forwarded connection, and at least
 * one in reserve, so that the next begins at once.
 */
export class NodeConnections {
  readonly #ways: Ways;
  readonly #open = new Set<NodeConnection>();
  #reserve: Promise<NodeConnection> | undefined;
  /** The connection that `keepOne` dialled, until it carries a forwarded connection. */
  #replacement: NodeConnection | undefined;
  #hasLostReplacement = false;
  readonly #dials = new Set<AbortController>();
  #isOver = false;

  constructor(ways: Ways) {
    this.#ways = ways;
  }

  get size(): number {
    return this.#open.size + this.#dials.size;
  }

  get open(): Iterable<NodeConnection> {
    return this.#open;
  }

  put(upstream: UpgradedConnection): NodeConnection {
    const connection = this.#ways.adopt(upstream);
    if (!connection.peer.isOver) this.#open.add(connection);
    return connection;
  }

  /**
   * An unused or new connection; past the bound, the one that carries the fewest. Rejects as `dial`
   * does.
   */
  async take(user: ConnectionUser): Promise<NodeConnection> {
    const unused = this.#unused();
    unused?.users.add(user);
    const connection = unused ?? (await this.#takeDialled(user)) ?? (await this.#takeAnother(user));
    if (connection === this.#replacement) this.#replacement = undefined;
    this.#refill();
    return connection;
  }

  /** A forwarded connection is over. If it was cut short, the node may not have read all of it. */
  give(connection: NodeConnection, user: ConnectionUser, endedWhole: boolean): void {
    connection.users.delete(user);
    const unused = [...this.#open].filter(({ users }) => users.size === 0);
    const most = endedWhole ? MAX_UNUSED_FORWARD_CONNECTIONS : 1;
    if (connection.users.size === 0 && unused.length > most) this.#end(connection);
  }

  lost(connection: NodeConnection): void {
    this.#open.delete(connection);
    if (connection === this.#replacement) this.#hasLostReplacement = true;
  }

  /**
   * Dials a connection if there is none. Rejects as `dial` does, and if the one that it dialled
   * before ended unused: otherwise it would dial for ever to a node that ends each at once.
   */
  async keepOne(): Promise<void> {
    if (this.size > 0 || this.#isOver) return;
    const replacement = this.#hasLostReplacement ? undefined : await this.#dial();
    if (replacement === undefined || replacement.peer.isOver)
      throw new Error("the node ends connections that carry nothing");
    if (replacement.users.size === 0) this.#replacement = replacement;
  }

  over(): void {
    this.#isOver = true;
    for (const dial of this.#dials) dial.abort();
    for (const connection of [...this.#open]) this.#end(connection);
  }

  #unused(): NodeConnection | undefined {
    for (const connection of this.#open) if (connection.users.size === 0) return connection;
    return undefined;
  }

  /** Waits for the reserve connection's dial. Undefined if there is none, or it cannot be used. */
  async #takeDialled(user: ConnectionUser): Promise<NodeConnection | undefined> {
    const reserve = this.#reserve;
    this.#reserve = undefined;
    const connection = await reserve?.catch(() => undefined);
    if (connection === undefined || connection.users.size > 0 || connection.peer.isOver) return undefined;
    connection.users.add(user);
    return connection;
  }

  async #takeAnother(user: ConnectionUser): Promise<NodeConnection> {
    if (this.size < MAX_FORWARD_CONNECTIONS) return await this.#dial(user);
    const [shared] = [...this.#open].toSorted((a, b) => a.users.size - b.users.size);
    if (shared === undefined) throw new Error("too many connections to the node are being made");
    shared.users.add(user);
    return shared;
  }

  #refill(): void {
    const isFull = this.size >= MAX_FORWARD_CONNECTIONS;
    if (isFull || this.#reserve !== undefined || this.#unused() !== undefined || this.#isOver) return;
    const reserve = this.#dial();
    const done = (): void => {
      if (this.#reserve === reserve) this.#reserve = undefined;
    };
    this.#reserve = reserve;
    reserve.then(done, done);
  }

  async #dial(user?: ConnectionUser): Promise<NodeConnection> {
    const dial = new AbortController();
    this.#dials.add(dial);
    try {
      const upstream = await this.#ways.dial(dial.signal);
      const connection = this.put(upstream);
      if (this.#isOver) this.#end(connection);
      else if (user !== undefined) connection.users.add(user);
      return connection;
    } finally {
      this.#dials.delete(dial);
    }
  }

  #end(connection: NodeConnection): void {
    this.#open.delete(connection);
    connection.peer.finish();
  }
}
