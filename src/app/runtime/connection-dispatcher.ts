import type { Socket } from "node:net";
import type { Logger } from "../../observability/logger.ts";

/** A worker as far as connections are concerned. */
export interface Recipient {
  /** Takes no connections while it starts or after it died. */
  readonly isTaking: boolean;
  readonly sessions: number;
  /** The socket stays open here as well, until the worker has it: see `ConnectionDispatcher.received`. `onLost`: it cannot be sent. */
  take(name: string, id: number, socket: Socket, onLost: () => void): void;
}

export interface ConnectionDispatcherOptions {
  readonly recipients: () => readonly Recipient[];
  /** Connections of one address at once, over all workers and of one listener. */
  readonly maxConnectionsPerAddress: number;
  /** By which an address is counted at a listener; undefined: not at all. */
  readonly networkOf: (address: string, listener: string) => string | undefined;
  onRefused(): void;
  readonly logger: Logger;
}

interface Accepted {
  readonly name: string;
  readonly socket: Socket;
  readonly network: string | undefined;
}

interface Handed {
  readonly recipient: Recipient;
  readonly network: string | undefined;
  /** As long as it may not have arrived. */
  onItsWay?: Accepted | undefined;
  /** Our copy of one that has arrived. */
  kept?: Socket | undefined;
}

/**
 * Copies of workers' connections. The system ends those of a killed worker with FIN, a proper end to
 * SPDY, unless another process has a copy: then they are reset here.
 */
export const MAX_KEPT_CONNECTIONS = 4_096;

/** Connections that wait while no worker takes any: a moment's worth. Past it they are closed. */
export const MAX_WAITING_CONNECTIONS = 1_024;

/**
 * Gives each accepted connection to the worker with the fewest sessions and open connections (docs/workers.md). Turns would give all
 * sessions to one of two workers where clients open a connection for a request and another for the session.
 */
export class ConnectionDispatcher {
  readonly #options: ConnectionDispatcherOptions;
  readonly #handed = new Map<number, Handed>();
  readonly #openOf = new Map<Recipient, number>();
  readonly #countOf = new Map<string, number>();
  readonly #waiting: Accepted[] = [];
  readonly #lastTurn = new Map<Recipient, number>();
  #lastId = 0;
  #kept = 0;

  constructor(options: ConnectionDispatcherOptions) {
    this.#options = options;
  }

  /** A connection that `name`'s listener has accepted, unread. */
  accept(name: string, socket: Socket): void {
    socket.on("error", () => {});
    const network = this.#networkOf(name, socket);
    if (network !== undefined) {
      const count = (this.#countOf.get(network) ?? 0) + 1;
      if (count > this.#options.maxConnectionsPerAddress) {
        this.#options.onRefused();
        socket.destroy();
        return;
      }
      this.#countOf.set(network, count);
    }
    this.#give({ name, socket, network });
  }

  /** The worker has this connection, and has not read from it yet: from now on it ends with the worker. */
  received(id: number): void {
    const handed = this.#handed.get(id);
    const socket = handed?.onItsWay?.socket;
    if (handed === undefined || socket === undefined) return;
    handed.onItsWay = undefined;
    if (this.#kept < MAX_KEPT_CONNECTIONS) {
      this.#kept += 1;
      handed.kept = socket;
    } else {
      // Closes our copy; the worker's stays open.
      socket.destroy();
    }
  }

  /** These connections are over, and count no more. */
  closed(ids: readonly number[]): void {
    for (const id of ids) {
      const handed = this.#handed.get(id);
      if (handed === undefined) continue;
      handed.onItsWay?.socket.destroy();
      this.#dropCopy(handed, false);
      this.#handed.delete(id);
      add(this.#openOf, handed.recipient, -1);
      if (handed.network !== undefined) add(this.#countOf, handed.network, -1);
    }
  }

  /**
   * A worker is gone, and its connections with it; those that were on their way to it go to others.
   * `isCrash`: it did not end them itself, and their clients must not take what they have for all.
   */
  forget(recipient: Recipient, isCrash = false): void {
    for (const [id, handed] of [...this.#handed]) {
      if (handed.recipient !== recipient) continue;
      this.#dropCopy(handed, isCrash);
      this.#takeBack(id);
    }
    this.#openOf.delete(recipient);
    this.#lastTurn.delete(recipient);
  }

  #dropCopy(handed: Handed, isCrash: boolean): void {
    if (handed.kept === undefined) return;
    this.#kept -= 1;
    if (isCrash) handed.kept.resetAndDestroy();
    else handed.kept.destroy();
    handed.kept = undefined;
  }

  /** A worker takes connections: those that waited go now. */
  resume(): void {
    for (const accepted of this.#waiting.splice(0)) this.#give(accepted);
  }

  openOf(recipient: Recipient): number {
    return this.#openOf.get(recipient) ?? 0;
  }

  #give(accepted: Accepted): void {
    const { name, socket, network } = accepted;
    const recipient = this.#leastLoaded();
    if (socket.destroyed || (recipient === undefined && this.#waiting.length >= MAX_WAITING_CONNECTIONS)) {
      socket.destroy();
      if (network !== undefined) add(this.#countOf, network, -1);
      return;
    }
    if (recipient === undefined) {
      this.#waiting.push(accepted);
      return;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const handed: Handed = { recipient, network, onItsWay: accepted };
    this.#handed.set(id, handed);
    this.#lastTurn.set(recipient, id);
    add(this.#openOf, recipient, 1);
    recipient.take(name, id, socket, () => this.#takeBack(id));
  }

  #takeBack(id: number): void {
    const handed = this.#handed.get(id);
    const accepted = handed?.onItsWay;
    if (handed !== undefined) handed.onItsWay = undefined;
    this.closed([id]);
    if (accepted === undefined) return;
    this.#options.logger.warn({ listener: accepted.name }, "a connection could not be handed over");
    if (accepted.network !== undefined) add(this.#countOf, accepted.network, 1);
    // Not in this tick: the worker that could not take it may still look alive.
    setImmediate(() => this.#give(accepted));
  }

  #leastLoaded(): Recipient | undefined {
    let least: Recipient | undefined;
    let leastLoad = Number.POSITIVE_INFINITY;
    for (const recipient of this.#options.recipients()) {
      if (!recipient.isTaking) continue;
      const load = recipient.sessions + this.openOf(recipient);
      const isLess =
        load < leastLoad || (load === leastLoad && this.#turnOf(recipient) < this.#turnOf(least));
      if (!isLess) continue;
      [least, leastLoad] = [recipient, load];
    }
    return least;
  }

  #turnOf(recipient: Recipient | undefined): number {
    return recipient === undefined ? 0 : (this.#lastTurn.get(recipient) ?? 0);
  }

  #networkOf(name: string, socket: Socket): string | undefined {
    const network = this.#options.networkOf(socket.remoteAddress ?? "", name);
    return network === undefined ? undefined : `${name} ${network}`;
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, difference: number): void {
  const count = (counts.get(key) ?? 0) + difference;
  if (count <= 0) counts.delete(key);
  else counts.set(key, count);
}
