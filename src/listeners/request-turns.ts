/**
 * Requests that a listener begins in one turn of the event loop. Past it they wait for the next:
 * addresses take turns, and so do an address's connections.
 */
export const REQUESTS_A_TURN = 16;

/** A request's connection, which is its lane within its address's. */
interface Connection {
  readonly remoteAddress?: string | undefined;
}

type Begin = () => void;

/**
 * Begins a listener's requests a few a turn, since Node reports a client's whole burst in one. Addresses
 * take turns, and within each its connections.
 */
export class RequestTurns {
  #left = REQUESTS_A_TURN;
  #isScheduled = false;
  #isDraining = false;
  /** In turn order: addresses, and within each its connections. */
  readonly #addresses = new Map<string, Map<Connection, Begin[]>>();

  /**
   * Calls `begin`, which must not throw, now or in a later turn. Requests of one connection keep their
   * order.
   */
  take(connection: Connection, begin: Begin): void {
    if (this.#isDraining || (this.#left > 0 && this.#addresses.size === 0)) {
      this.#left -= 1;
      // No immediate for each request: the common turn has one or two of them.
      if (this.#left <= 0) this.#schedule();
      begin();
      return;
    }
    const address = connection.remoteAddress ?? "";
    const connections = this.#addresses.get(address) ?? new Map<Connection, Begin[]>();
    this.#addresses.set(address, connections);
    const waiting = connections.get(connection);
    if (waiting === undefined) connections.set(connection, [begin]);
    else waiting.push(begin);
    this.#schedule();
  }

  /**
   * Begins what waits, and later requests at once: a shutdown waits only for requests that have
   * begun.
   */
  drain(): void {
    this.#isDraining = true;
    for (let begin = this.#next(); begin !== undefined; begin = this.#next()) begin();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  #turn(): void {
    this.#isScheduled = false;
    this.#left = REQUESTS_A_TURN;
    for (; this.#left > 0; this.#left -= 1) {
      const begin = this.#next();
      if (begin === undefined) return;
      begin();
    }
    this.#schedule();
  }

  /** The next request in turn, which no longer waits. */
  #next(): Begin | undefined {
    const [address, connections] = firstOf(this.#addresses);
    const [connection, waiting] = firstOf(connections);
    const begin = waiting?.shift();
    if (address === undefined || connection === undefined) return undefined;
    connections?.delete(connection);
    if (waiting !== undefined && waiting.length > 0) connections?.set(connection, waiting);
    this.#addresses.delete(address);
    if (connections !== undefined && connections.size > 0) this.#addresses.set(address, connections);
    return begin;
  }
}

function firstOf<Key, Value>(
  map: ReadonlyMap<Key, Value> | undefined,
): readonly [key: Key | undefined, value: Value | undefined] {
  return map?.entries().next().value ?? [undefined, undefined];
}
