import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { contain, containAsync } from "@sluice/client/internal/observability/faults";
import { networkOf } from "./edge-rules.ts";

/**
 * Requests that a listener starts in one turn of the event loop. Past it they wait: addresses take
 * turns, and so do an address's connections.
 */
const REQUESTS_A_TURN = 16;
/**
 * Requests in one turn from clients whose last answer was 401, 403 or 429. Past it they wait for
 * the next turn, while other clients' requests start.
 */
const REFUSED_REQUESTS_A_TURN = 2;
/**
 * Refused addresses that a listener remembers. Past it the one refused longest ago counts as not
 * refused.
 */
const MAX_REFUSED_ADDRESSES = 10_000;

/** Answers to clients without valid credentials, without permission, or past their shares. */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 429]);

/** A request's connection. Its waiting requests form one of its address's lanes. */
export interface Lane {
  readonly remoteAddress?: string | undefined;
}

type Begin = () => void;

/**
 * Starts a few of a listener's requests in each turn, since Node reports a client's whole burst in
 * one. Addresses take turns, and so do each one's connections. Refused clients share fewer starts.
 */
export class RequestTurns {
  readonly #isExempt: (address: string) => boolean;
  #left = REQUESTS_A_TURN;
  #refusedLeft = REFUSED_REQUESTS_A_TURN;
  #isScheduled = false;
  #isDraining = false;
  readonly #others = new Lanes();
  readonly #refused = new Lanes();
  /**
   * Whether a connection's last answer was a refusal. Before its first answer its address decides.
   */
  readonly #isRefused = new WeakMap<Lane, boolean>();
  /** Networks whose last answer was a refusal, the most recent last. */
  readonly #refusedAddresses = new Set<string>();

  /**
   * `isExempt`: true for a proxy's address. Its connections belong to many clients, so one client's
   * refusal must not affect the others.
   */
  constructor(isExempt: (address: string) => boolean = () => false) {
    this.#isExempt = isExempt;
  }

  /**
   * Calls `begin`, which must not throw, now or in a later turn. Keeps the order of a connection's
   * requests.
   */
  take(connection: Lane, begin: Begin): void {
    if (this.#isDraining) {
      begin();
      return;
    }
    const lanes = this.#lanesOf(connection);
    const isRefused = lanes === this.#refused;
    if (lanes.size > 0 || this.#left <= 0 || (isRefused && this.#refusedLeft <= 0)) {
      lanes.add(connection, begin);
      this.#schedule();
      return;
    }
    this.#count(isRefused);
    // Most turns have one or two requests, and these need no immediate.
    if (this.#left <= 0 || this.#refusedLeft <= 0) this.#schedule();
    begin();
  }

  /**
   * Starts an HTTP/1.1 exchange in its turn, unless its client has left by then, and records the
   * answer's status.
   */
  takeExchange(
    { socket }: Pick<IncomingMessage, "socket">,
    response: ServerResponse,
    begin: Begin,
    abort: () => void,
  ): void {
    response.once("close", () => {
      if (response.headersSent) this.answered(socket, response.statusCode);
    });
    this.take(socket, () => {
      if (!response.destroyed) contain("listener", begin, abort);
    });
  }

  /**
   * Starts an HTTP/1.1 upgrade in its turn, unless its client has left by then. Records the
   * answer's status, with which `begin` resolves; undefined: there was no answer.
   */
  takeUpgrade(
    socket: Duplex & Lane,
    begin: () => Promise<number | undefined>,
    abort: (error: unknown) => void,
  ): void {
    // Node has removed its own listener, and without one an ECONNRESET would end the process.
    socket.on("error", () => socket.destroy());
    const answered = async (): Promise<void> => {
      const status = await begin();
      if (status !== undefined) this.answered(socket, status);
    };
    this.take(socket, () => {
      if (!socket.destroyed) containAsync("listener", answered(), abort);
    });
  }

  /**
   * Records an answer's status. It decides how the connection's waiting and later requests are
   * queued.
   */
  answered(connection: Lane, status: number): void {
    const isRefused = REFUSALS.has(status);
    const { remoteAddress } = connection;
    if (this.#isRefused.get(connection) === false && !isRefused) return;
    if (remoteAddress === undefined || (isRefused && this.#isExempt(remoteAddress))) return;
    this.#isRefused.set(connection, isRefused);
    const [from, to] = isRefused ? [this.#others, this.#refused] : [this.#refused, this.#others];
    for (const begin of from.remove(connection)) to.add(connection, begin);
    if (isRefused || this.#refusedAddresses.size > 0) this.#judgeAddress(networkOf(remoteAddress), isRefused);
  }

  #judgeAddress(address: string, isRefused: boolean): void {
    this.#refusedAddresses.delete(address);
    if (!isRefused) return;
    this.#refusedAddresses.add(address);
    if (this.#refusedAddresses.size <= MAX_REFUSED_ADDRESSES) return;
    const [oldest = ""] = this.#refusedAddresses;
    this.#refusedAddresses.delete(oldest);
  }

  /**
   * Starts all waiting requests, and from now on new ones at once: a shutdown waits only for
   * requests that have started.
   */
  drain(): void {
    this.#isDraining = true;
    for (const lanes of [this.#others, this.#refused])
      for (let begin = lanes.next(); begin !== undefined; begin = lanes.next()) begin();
  }

  /** A connection with waiting requests stays in the same lanes, which keeps the order. */
  #lanesOf(connection: Lane): Lanes {
    if (this.#refused.has(connection)) return this.#refused;
    if (this.#others.has(connection)) return this.#others;
    const isRefused =
      this.#isRefused.get(connection) ??
      (this.#refusedAddresses.size > 0 &&
        this.#refusedAddresses.has(networkOf(connection.remoteAddress ?? "")));
    return isRefused ? this.#refused : this.#others;
  }

  #count(isRefused: boolean): void {
    this.#left -= 1;
    if (isRefused) this.#refusedLeft -= 1;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => this.#turn());
  }

  /** Refused clients come first, because the others may start more and would use up the turn. */
  #turn(): void {
    this.#isScheduled = false;
    this.#left = REQUESTS_A_TURN;
    this.#refusedLeft = REFUSED_REQUESTS_A_TURN;
    this.#beginFrom(this.#refused);
    this.#beginFrom(this.#others);
    if (this.#refused.size + this.#others.size > 0) this.#schedule();
  }

  #beginFrom(lanes: Lanes): void {
    const isRefused = lanes === this.#refused;
    while (this.#left > 0 && (!isRefused || this.#refusedLeft > 0)) {
      const begin = lanes.next();
      if (begin === undefined) return;
      this.#count(isRefused);
      begin();
    }
    this.#schedule();
  }
}

/**
 * Waiting requests in the order in which they start: networks take turns, and so do each one's
 * connections.
 */
export class Lanes {
  readonly #networks = new Map<string, Map<Lane, Begin[]>>();
  /** Each connection's network, because a closed socket may no longer know its address. */
  readonly #connections = new Map<Lane, string>();
  size = 0;

  has(connection: Lane): boolean {
    return this.size > 0 && this.#connections.has(connection);
  }

  add(connection: Lane, begin: Begin): void {
    const network = this.#connections.get(connection) ?? networkOf(connection.remoteAddress ?? "");
    const connections = this.#networks.get(network) ?? new Map<Lane, Begin[]>();
    this.#networks.set(network, connections);
    const waiting = connections.get(connection);
    if (waiting === undefined) connections.set(connection, [begin]);
    else waiting.push(begin);
    this.#connections.set(connection, network);
    this.size += 1;
  }

  /** Removes a connection's waiting requests and returns them. */
  remove(connection: Lane): Begin[] {
    const network = this.size === 0 ? undefined : this.#connections.get(connection);
    if (network === undefined) return [];
    const connections = this.#networks.get(network);
    const waiting = connections?.get(connection) ?? [];
    connections?.delete(connection);
    if (connections?.size === 0) this.#networks.delete(network);
    this.#connections.delete(connection);
    this.size -= waiting.length;
    return waiting;
  }

  /** Removes the next request and returns it. */
  next(): Begin | undefined {
    const [network, connections] = firstOf(this.#networks);
    const [connection, waiting] = firstOf(connections);
    const begin = waiting?.shift();
    if (network === undefined || connections === undefined || connection === undefined) return undefined;
    this.size -= 1;
    connections.delete(connection);
    if (waiting !== undefined && waiting.length > 0) connections.set(connection, waiting);
    else this.#connections.delete(connection);
    this.#networks.delete(network);
    if (connections.size > 0) this.#networks.set(network, connections);
    return begin;
  }
}

function firstOf<Key, Value>(
  map: ReadonlyMap<Key, Value> | undefined,
): readonly [key: Key | undefined, value: Value | undefined] {
  return map?.entries().next().value ?? [undefined, undefined];
}
